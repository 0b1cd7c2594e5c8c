package openai

import (
	"bytes"
	"encoding/json"

	"github.com/cove-sandbox/cove/internal/chat"
)

// request is what is posted. It has no temperature: some models take only their own.
type request struct {
	Model      string    `json:"model"`
	Messages   []message `json:"messages"`
	Tools      []tool    `json:"tools,omitempty"`
	ToolChoice string    `json:"tool_choice,omitempty"`
	Stream     bool      `json:"stream,omitempty"`
}

type message struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"` // null where the model only asked for tools
	ToolCalls []call  `json:"tool_calls,omitempty"`
	CallID    string  `json:"tool_call_id,omitempty"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

type call struct {
	Index    *int       `json:"index,omitempty"` // in streams; some servers leave it out
	ID       string     `json:"id"`
	Type     string     `json:"type"`
	Function calledFunc `json:"function"`
}

type calledFunc struct {
	Name      string `json:"name"`
	Arguments words  `json:"arguments"`
}

// answer is what comes back in one piece, and each event of a stream: the one has
// its text in message, the other in delta.
type answer struct {
	Choices []choice        `json:"choices"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index   int    `json:"index"`
	Message said   `json:"message"`
	Delta   said   `json:"delta"`
	Finish  string `json:"finish_reason"`
}

type said struct {
	Content   words  `json:"content"`
	Refusal   words  `json:"refusal"`
	ToolCalls []call `json:"tool_calls"`
}

// words is a text that some servers send otherwise: as null, as a list of parts, or,
// for arguments, as the object that the text should hold.
type words string

// UnmarshalJSON implements [json.Unmarshaler].
func (w *words) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	switch {
	case bytes.Equal(data, []byte("null")):
		return nil
	case len(data) > 0 && data[0] == '{':
		*w = words(data)
		return nil
	case len(data) > 0 && data[0] == '[':
		var parts []struct {
			Text string `json:"text"`
		}
		err := json.Unmarshal(data, &parts)
		for _, p := range parts {
			*w += words(p.Text)
		}
		return err
	}
	return json.Unmarshal(data, (*string)(w))
}

// body is the request for a conversation.
func (m *Model) body(ask chat.Ask, stream bool) ([]byte, error) {
	r := request{Model: m.name, Stream: stream, Messages: make([]message, 0, len(ask.Turns))}
	for _, t := range ask.Turns {
		out := message{Role: string(t.Role), Content: &t.Text, CallID: t.Call}
		for _, c := range t.Calls {
			out.ToolCalls = append(out.ToolCalls, call{ID: c.ID, Type: "function", Function: calledFunc{c.Name, words(c.Arguments)}})
		}
		if t.Text == "" && len(t.Calls) > 0 {
			out.Content = nil
		}
		r.Messages = append(r.Messages, out)
	}
	for _, t := range ask.Tools {
		r.Tools = append(r.Tools, tool{Type: "function", Function: function{t.Name, t.Description, t.Parameters}})
	}
	if len(r.Tools) > 0 {
		r.ToolChoice = "auto"
		if ask.Last {
			r.ToolChoice = "none" // and not none listed: some want those that were used before
		}
	}
	return json.Marshal(r)
}
