package cove

import (
	"context"
	"iter"
	"time"
)

// Chats are conversations about data. What begins with SQL: or PYTHON: is run as
// it is; anything else is for a model, whose only hands are governed runs.
type Chats interface {
	// Send answers one message of a thread, and keeps both.
	Send(ctx context.Context, req ChatRequest) (*ChatAnswer, error)
	// Messages yields a thread by id. A thread belongs to who began it: another's
	// is NotFound, as is one in which nothing was said.
	Messages(ctx context.Context, f MessageFilter) iter.Seq2[*Message, error]
	// Delete forgets a thread. NotFound as above.
	Delete(ctx context.Context, thread string) error
}

// ChatRequest is one message.
type ChatRequest struct {
	Thread   string `json:"thread_id,omitempty"` // "": a new one
	Message  string `json:"message"`
	Dataset  string `json:"dataset_id,omitempty"`
	Provider string `json:"provider,omitempty"`
	MaxRows  int    `json:"max_rows,omitempty"`

	// OnEvent is told each step as it happens; nil: nobody looks on.
	OnEvent        func(ChatEvent) `json:"-"`
	IdempotencyKey string          `json:"-"`
}

// maxMessageBytes bounds one message.
const maxMessageBytes = 256 << 10

// Validate reports the first field that is out of bounds.
func (r ChatRequest) Validate() error {
	switch {
	case r.Message == "":
		return InvalidField("message", "is empty; ask something, or begin with SQL: or PYTHON:")
	case len(r.Message) > maxMessageBytes:
		return InvalidField("message", "is longer than %d bytes", maxMessageBytes)
	case r.MaxRows < 0 || r.MaxRows > MaxRunRows:
		return InvalidField("max_rows", "%d is out of range; use 1 to %d", r.MaxRows, MaxRunRows)
	}
	for _, n := range []struct{ field, text string }{{"thread_id", r.Thread}, {"dataset_id", r.Dataset}, {"provider", r.Provider}} {
		if err := validText(n.field, n.text, maxNameLen); err != nil {
			return err
		}
	}
	return validText("message", r.Message, maxMessageBytes)
}

// ChatAnswer is what came of a message.
type ChatAnswer struct {
	Thread  string     `json:"thread_id"`
	Message Message    `json:"message"`         // of the assistant
	Query   string     `json:"query,omitempty"` // the last question to data that had an answer, or else the last one
	Type    QueryType  `json:"query_type,omitempty"`
	Result  *Run       `json:"result,omitempty"`  // its run
	Blocked []RunError `json:"blocked,omitempty"` // what policy refused on the way
	Rounds  int        `json:"rounds"`            // how often the model was asked
	Model   string     `json:"model,omitempty"`
	Stopped ChatStop   `json:"stopped,omitempty"` // why the answer is not what the model would say in the end
}

// ChatStop is why a model has no whole answer. The message says it in words.
type ChatStop string

// The reasons to stop.
const (
	ChatRounds   ChatStop = "rounds"   // it asked for tools as often as it may
	ChatLength   ChatStop = "length"   // its answer got too long
	ChatFiltered ChatStop = "filtered" // its operator held the answer back
	ChatEmpty    ChatStop = "empty"    // it said nothing
)

// Role is who speaks.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one message of a thread.
type Message struct {
	ID        ID        `json:"id"`
	Tenant    string    `json:"tenant"`
	Owner     string    `json:"owner"`
	Thread    string    `json:"thread_id"`
	Role      Role      `json:"role"`
	Text      string    `json:"text"`
	Runs      []ID      `json:"runs,omitempty"` // those that it led to
	Query     string    `json:"query,omitempty"`
	Type      QueryType `json:"query_type,omitempty"`
	Error     *RunError `json:"error,omitempty"` // of a query that was sent as it is
	Model     string    `json:"model,omitempty"` // whose words they are
	Rounds    int       `json:"rounds,omitempty"`
	Stopped   ChatStop  `json:"stopped,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// MessageFilter selects messages of a thread.
type MessageFilter struct {
	Tenant string
	Owner  string
	Thread string
	After  ID  // continue after it
	Limit  int // 0: all
}

// Match reports whether f selects a message; After and Limit do not count.
func (f MessageFilter) Match(m *Message) bool {
	return (f.Tenant == "" || f.Tenant == m.Tenant) && (f.Owner == "" || f.Owner == m.Owner) && (f.Thread == "" || f.Thread == m.Thread)
}

// ChatEvent is one step towards an answer.
type ChatEvent struct {
	Kind  ChatEventKind `json:"kind"`
	Text  string        `json:"text,omitempty"` // of the answer, or the arguments of a tool
	Tool  string        `json:"tool,omitempty"`
	Run   *Run          `json:"run,omitempty"`
	Error *RunError     `json:"error,omitempty"`
}

// ChatEventKind says what a step was.
type ChatEventKind string

// The steps.
const (
	ChatToken   ChatEventKind = "token"     // a piece of the answer's text
	ChatTool    ChatEventKind = "tool_call" // the model asks for a tool
	ChatRun     ChatEventKind = "run"       // a run has ended
	ChatBlocked ChatEventKind = "blocked"   // policy refused one
)

// Responder answers messages; the engine's Chats work on it. p is bound to who
// asks, so that all it does is done as the caller. history is the end of the thread.
// Of the answer's message it fills in Text, Runs and Error; the engine does the rest.
type Responder interface {
	Respond(ctx context.Context, p Platform, history []*Message, req ChatRequest) (*ChatAnswer, error)
}
