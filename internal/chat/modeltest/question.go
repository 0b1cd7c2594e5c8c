package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// Question is a request that the server took.
type Question struct {
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	Tools    []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Parameters  struct {
				Type       string          `json:"type"`
				Properties json.RawMessage `json:"properties"`
				Required   []string        `json:"required"`
				Additional *bool           `json:"additionalProperties"`
			} `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice string `json:"tool_choice"`
	Stream     bool   `json:"stream"`
}

// Message is one piece of the conversation in a request.
type Message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Text is what a message says.
func (m Message) Text() string {
	if m.Content == nil {
		return ""
	}
	return *m.Content
}

// Last is what the last message of the conversation says: the user's question, or
// what a tool gave.
func (q Question) Last() string { return q.Messages[len(q.Messages)-1].Text() }

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// read takes a request apart, and refuses what a strict server would.
func read(body []byte) (Question, error) {
	var q Question
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&q); err != nil {
		return q, fmt.Errorf("the body: %w", err)
	}
	if q.Model == "" || len(q.Messages) == 0 {
		return q, errors.New("model and messages are required")
	}
	for _, t := range q.Tools {
		f := t.Function
		if t.Type != "function" || !toolName.MatchString(f.Name) || f.Description == "" || f.Parameters.Type != "object" || !bytes.HasPrefix(f.Parameters.Properties, []byte("{")) {
			return q, fmt.Errorf("tool %q is none", f.Name)
		}
	}
	if (q.ToolChoice != "") != (len(q.Tools) > 0) {
		return q, errors.New("tool_choice is only allowed when tools are specified")
	}
	return q, inTurn(q.Messages)
}

// inTurn checks that every call of a tool has its answer, at once, and no other.
func inTurn(messages []Message) error {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("messages.[%d]: an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'", i)
		}
		switch {
		case m.Role == "tool":
			if !open[m.ToolCallID] || m.Content == nil {
				return fmt.Errorf("messages.[%d]: a tool message must answer a preceding tool_call", i)
			}
			delete(open, m.ToolCallID)
		case m.Role == "assistant":
			for _, c := range m.ToolCalls {
				if c.ID == "" || open[c.ID] || c.Type != "function" || !toolName.MatchString(c.Function.Name) || !json.Valid([]byte(c.Function.Arguments)) {
					return fmt.Errorf("messages.[%d]: tool call %+v is none", i, c)
				}
				open[c.ID] = true
			}
			if m.Content == nil && len(m.ToolCalls) == 0 {
				return fmt.Errorf("messages.[%d]: content is required", i)
			}
		case m.Role != "user" && m.Role != "system" || m.Content == nil:
			return fmt.Errorf("messages.[%d]: role %q with that content is none", i, m.Role)
		}
	}
	if len(open) > 0 {
		return errors.New("the last tool calls have no answer")
	}
	return nil
}
