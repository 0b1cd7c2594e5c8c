package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Call is a tool that the model asks for.
type Call struct {
	ID        string // "" is made up
	Name      string
	Arguments string
}

// Say answers with a text.
func Say(text string) Step {
	return func(w http.ResponseWriter, _ *http.Request, q Question) { write(w, q, text, nil, "stop") }
}

// SayOf answers with a text that depends on the request, such as on what a tool gave.
func SayOf(text func(Question) string) Step {
	return func(w http.ResponseWriter, _ *http.Request, q Question) { write(w, q, text(q), nil, "stop") }
}

// SayUpTo answers with a text that got too long.
func SayUpTo(text string) Step {
	return func(w http.ResponseWriter, _ *http.Request, q Question) { write(w, q, text, nil, "length") }
}

// Filtered answers with what the operator of a model let pass.
func Filtered(text string) Step {
	return func(w http.ResponseWriter, _ *http.Request, q Question) { write(w, q, text, nil, "content_filter") }
}

// Use asks for tools, all at once.
func Use(calls ...Call) Step {
	return func(w http.ResponseWriter, _ *http.Request, q Question) { write(w, q, "", calls, "tool_calls") }
}

// Whole answers with a text in one piece, also where a stream was asked for.
func Whole(text string) Step {
	return func(w http.ResponseWriter, _ *http.Request, q Question) {
		q.Stream = false
		write(w, q, text, nil, "stop")
	}
}

func write(w http.ResponseWriter, q Question, text string, calls []Call, finish string) {
	calls = slices.Clone(calls)
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = fmt.Sprintf("call_%d_%d", len(q.Messages), i)
		}
	}
	if q.Stream {
		writeStream(w, q, text, calls, finish)
		return
	}
	message := map[string]any{"role": "assistant", "content": text, "refusal": nil}
	if len(calls) > 0 {
		list := make([]any, 0, len(calls))
		for _, c := range calls {
			list = append(list, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments}})
		}
		message["tool_calls"], message["content"] = list, nil
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": q.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	})
}

func writeStream(w http.ResponseWriter, q Question, text string, calls []Call, finish string) {
	s := Begin(w, q)
	s.Delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, piece := range strings.SplitAfter(text, " ") {
		if piece != "" {
			s.Delta(map[string]any{"content": piece}, nil)
		}
	}
	s.Comment("keep-alive")
	for i, c := range calls {
		part := func(fields map[string]any) {
			fields["index"] = i
			s.Delta(map[string]any{"tool_calls": []any{fields}}, nil)
		}
		part(map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}})
		for rest := c.Arguments; rest != ""; {
			n := min(len(rest), 7)
			for n < len(rest) && rest[n]&0xC0 == 0x80 {
				n++ // not inside a rune
			}
			part(map[string]any{"function": map[string]any{"arguments": rest[:n]}})
			rest = rest[n:]
		}
	}
	s.Delta(map[string]any{}, finish)
	s.Data("[DONE]")
}

// Stream is an answer in events.
type Stream struct {
	w     http.ResponseWriter
	model string
}

// Begin starts an answer in events.
func Begin(w http.ResponseWriter, q Question) Stream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	return Stream{w, q.Model}
}

// Delta sends one piece of the one choice. finish is nil before the last.
func (s Stream) Delta(delta map[string]any, finish any) {
	data, _ := json.Marshal(map[string]any{ // maps of plain values cannot fail
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": s.model,
		"choices": []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}},
	})
	s.Data(string(data))
}

// Data sends one event as it is.
func (s Stream) Data(data string) { s.write("data: " + data + "\n\n") }

// Comment sends a line that means nothing.
func (s Stream) Comment(text string) { s.write(": " + text + "\n\n") }

func (s Stream) write(text string) {
	_, _ = s.w.Write([]byte(text))
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}
