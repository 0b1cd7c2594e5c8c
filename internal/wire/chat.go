package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// ChatRequest is one message of a thread.
type ChatRequest struct {
	ThreadID  string `json:"thread_id,omitempty" jsonschema:"left out, a new one"`
	Message   string `json:"message" jsonschema:"what begins with SQL: or PYTHON: is run as it is; anything else is for the model"`
	DatasetID string `json:"dataset_id,omitempty" jsonschema:"whose tables are meant where a name says no dataset"`
	Provider  string `json:"provider,omitempty" jsonschema:"that runs what is asked of data; left out, that of the settings"`
	MaxRows   *int   `json:"max_rows,omitempty" jsonschema:"1 to 1000; left out, 200"`
}

// ChatRequestOf returns the form of r; its idempotency key is a header.
func ChatRequestOf(r cove.ChatRequest) ChatRequest {
	return ChatRequest{ThreadID: r.Thread, Message: r.Message, DatasetID: r.Dataset, Provider: r.Provider, MaxRows: unlessZero(r.MaxRows)}
}

// Cove returns the platform's own form.
func (w ChatRequest) Cove() (r cove.ChatRequest, err error) {
	r = cove.ChatRequest{Thread: w.ThreadID, Message: w.Message, Dataset: w.DatasetID, Provider: w.Provider}
	r.MaxRows, err = above("max_rows", w.MaxRows)
	return r, err
}

// ChatAnswer is what came of a message.
type ChatAnswer struct {
	ThreadID  string          `json:"thread_id"`
	Answer    string          `json:"answer" jsonschema:"the text of the message"`
	Message   Message         `json:"message" jsonschema:"of the assistant"`
	Query     string          `json:"query,omitempty" jsonschema:"the last question to data that was asked"`
	QueryType cove.QueryType  `json:"query_type,omitempty" jsonschema:"sql or python"`
	Result    *Run            `json:"result,omitempty" jsonschema:"its run"`
	Blocked   []cove.RunError `json:"blocked,omitempty" jsonschema:"what policy refused on the way"`
	Rounds    int             `json:"rounds" jsonschema:"how often the model was asked"`
	Model     string          `json:"model,omitempty"`
	Stopped   cove.ChatStop   `json:"stopped,omitempty" jsonschema:"why the answer is not what the model would say in the end"`
}

// ChatAnswerOf returns the form of a.
func ChatAnswerOf(a *cove.ChatAnswer) ChatAnswer {
	w := ChatAnswer{
		ThreadID: a.Thread, Answer: a.Message.Text, Message: MessageOf(&a.Message), Query: a.Query, QueryType: a.Type,
		Blocked: a.Blocked, Rounds: a.Rounds, Model: a.Model, Stopped: a.Stopped,
	}
	if a.Result != nil {
		w.Result = new(RunOf(a.Result))
	}
	return w
}

// Cove returns the platform's own form.
func (w ChatAnswer) Cove() (*cove.ChatAnswer, error) {
	a := &cove.ChatAnswer{
		Thread: w.ThreadID, Message: *w.Message.Cove(), Query: w.Query, Type: w.QueryType,
		Blocked: w.Blocked, Rounds: w.Rounds, Model: w.Model, Stopped: w.Stopped,
	}
	var err error
	if w.Result != nil {
		a.Result, err = w.Result.Cove()
	}
	return a, err
}

// Message is one message of a thread.
type Message struct {
	ID        cove.ID        `json:"id"`
	ThreadID  string         `json:"thread_id"`
	Role      cove.Role      `json:"role" jsonschema:"user or assistant"`
	Text      string         `json:"text"`
	Runs      []cove.ID      `json:"runs,omitempty" jsonschema:"those that it led to"`
	Query     string         `json:"query,omitempty"`
	QueryType cove.QueryType `json:"query_type,omitempty" jsonschema:"sql or python"`
	Error     *cove.RunError `json:"error,omitempty"`
	Model     string         `json:"model,omitempty" jsonschema:"that said it"`
	Rounds    int            `json:"rounds,omitempty" jsonschema:"how often the model was asked"`
	Stopped   cove.ChatStop  `json:"stopped,omitempty" jsonschema:"why it is not what the model would say in the end"`
	Tenant    string         `json:"tenant"`
	Owner     string         `json:"owner"`
	CreatedAt time.Time      `json:"created_at"`
}

// MessageOf returns the form of m.
func MessageOf(m *cove.Message) Message {
	return Message{
		ID: m.ID, ThreadID: m.Thread, Role: m.Role, Text: m.Text, Runs: m.Runs, Query: m.Query, QueryType: m.Type,
		Error: m.Error, Model: m.Model, Rounds: m.Rounds, Stopped: m.Stopped, Tenant: m.Tenant, Owner: m.Owner, CreatedAt: m.CreatedAt,
	}
}

// Cove returns the platform's own form.
func (w Message) Cove() *cove.Message {
	return &cove.Message{
		ID: w.ID, Thread: w.ThreadID, Role: w.Role, Text: w.Text, Runs: w.Runs, Query: w.Query, Type: w.QueryType,
		Error: w.Error, Model: w.Model, Rounds: w.Rounds, Stopped: w.Stopped, Tenant: w.Tenant, Owner: w.Owner, CreatedAt: w.CreatedAt,
	}
}

// ChatEvent is one step towards an answer; the name of its event says which.
type ChatEvent struct {
	Text  string         `json:"text,omitempty" jsonschema:"of the answer, or the arguments of a tool"`
	Tool  string         `json:"tool,omitempty"`
	Run   *Run           `json:"run,omitempty"`
	Error *cove.RunError `json:"error,omitempty"`
}

// ChatEventOf returns the form of e.
func ChatEventOf(e cove.ChatEvent) ChatEvent {
	w := ChatEvent{Text: e.Text, Tool: e.Tool, Error: e.Error}
	if e.Run != nil {
		w.Run = new(RunOf(e.Run))
	}
	return w
}

// Cove returns the platform's own form of a step of the kind.
func (w ChatEvent) Cove(kind cove.ChatEventKind) (cove.ChatEvent, error) {
	e := cove.ChatEvent{Kind: kind, Text: w.Text, Tool: w.Tool, Error: w.Error}
	var err error
	if w.Run != nil {
		e.Run, err = w.Run.Cove()
	}
	return e, err
}
