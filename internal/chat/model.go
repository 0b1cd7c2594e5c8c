package chat

import (
	"context"
	"encoding/json"
)

// Model is what answers in natural language and asks for tools.
type Model interface {
	// Name is what the model is called, for the answer.
	Name() string
	// Next says what comes after a conversation. With on not nil, text is handed to
	// it as it comes. An error is a *cove.Error whose message has no secret in it.
	Next(ctx context.Context, ask Ask, on func(text string)) (*Reply, error)
}

// Ask is a conversation and what the model may ask for.
type Ask struct {
	Turns []Turn
	Tools []Tool
	Last  bool // there are no more tools: the model is to answer now
}

// Turn is one piece of a conversation.
type Turn struct {
	Role  Role
	Text  string
	Calls []Call // of the model
	Call  string // the id of the call that a tool answers
}

// Role is whose turn it is.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Tool is something that the model may ask for.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema
}

// Call is a tool that the model asks for. All of it is what the model wrote.
type Call struct {
	ID        string
	Name      string
	Arguments string // should be JSON
}

// Reply is what the model says.
type Reply struct {
	Text  string
	Calls []Call
	End   End
}

// End is why a model stopped.
type End string

// The ends of a reply.
const (
	EndWhole    End = ""         // it was finished
	EndLength   End = "length"   // it got too long
	EndFiltered End = "filtered" // its operator held it back
)
