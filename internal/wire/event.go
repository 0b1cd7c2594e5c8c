package wire

import (
	"encoding/json"
	"time"

	"github.com/cove-sandbox/cove"
)

// The names of the events in a text/event-stream answer.
const (
	OnStdout  = "stdout"  // a Chunk; the event's id is the offset after it
	OnStderr  = "stderr"  // a Chunk
	OnExit    = "exit"    // an Execution; the last event
	OnBuilt   = "built"   // a Template; the last event
	OnTrial   = "trial"   // a Trial; the last event
	OnValue   = "value"   // a Value
	OnResult  = "result"  // a CodeResult; the last event
	OnQueue   = "queue"   // a QueuePlace
	OnSession = "session" // a Session; the last event, but before code runs in it
	OnFile    = "file"    // a File
	OnChange  = "change"  // a Change
	OnEvent   = "event"   // an Event of the journal; the event's id is its seq
	OnFinding = "finding" // a Finding
	OnVerdict = "verdict" // a Verdict; the last event
	OnDone    = "done"    // a ChatAnswer; the last event
	OnEnd     = "end"     // nothing; the last event of a list that is whole
	OnError   = "error"   // a Problem; the last event
)

// Chunk is a piece of output; the name of its event says which stream.
type Chunk struct {
	Offset     int64   `json:"offset" jsonschema:"bytes of both streams before it"`
	Data       *string `json:"data,omitempty"`
	DataBase64 []byte  `json:"data_base64,omitempty" jsonschema:"in the place of data where that is not UTF-8"`
}

// ChunkOf returns the form of c.
func ChunkOf(c cove.Chunk) Chunk {
	w := Chunk{Offset: c.Offset}
	w.Data, w.DataBase64 = texts(c.Data)
	return w
}

// Cove returns the platform's own form of what was written to stream.
func (w Chunk) Cove(stream cove.Stream) cove.Chunk {
	return cove.Chunk{Stream: stream, Offset: w.Offset, Data: untexts(w.Data, w.DataBase64)}
}

// Event is one line of the journal.
type Event struct {
	Seq       int64           `json:"seq"`
	Time      time.Time       `json:"time"`
	NodeID    string          `json:"node_id,omitempty"`
	Kind      string          `json:"kind" jsonschema:"what was done, such as session.open"`
	Phase     cove.Phase      `json:"phase" jsonschema:"intent, outcome or note"`
	Intent    int64           `json:"intent,omitempty" jsonschema:"the seq of the intent that an outcome belongs to"`
	Principal string          `json:"principal,omitempty"`
	Tenant    string          `json:"tenant,omitempty"`
	SessionID cove.ID         `json:"session_id,omitempty"`
	Provider  string          `json:"provider,omitempty"`
	Effect    cove.Effect     `json:"effect,omitempty" jsonschema:"allow, deny or ask"`
	Rule      string          `json:"rule,omitempty"`
	Code      cove.Code       `json:"code,omitempty"`
	Outcome   cove.Outcome    `json:"outcome,omitempty"`
	WallMS    float64         `json:"wall_ms,omitempty"`
	Data      json.RawMessage `json:"data,omitempty" jsonschema:"hashes and lengths, never secrets"`
}

// EventOf returns the form of e.
func EventOf(e cove.Event) Event {
	return Event{
		Seq: e.Seq, Time: e.Time, NodeID: e.Node, Kind: e.Kind, Phase: e.Phase, Intent: e.Intent, Principal: e.Principal,
		Tenant: e.Tenant, SessionID: e.Session, Provider: e.Provider, Effect: e.Effect, Rule: e.Rule, Code: e.Code,
		Outcome: e.Outcome, WallMS: in(e.Wall, time.Millisecond), Data: e.Data,
	}
}

// Cove returns the platform's own form.
func (w Event) Cove() cove.Event {
	return cove.Event{
		Seq: w.Seq, Time: w.Time, Node: w.NodeID, Kind: w.Kind, Phase: w.Phase, Intent: w.Intent, Principal: w.Principal,
		Tenant: w.Tenant, Session: w.SessionID, Provider: w.Provider, Effect: w.Effect, Rule: w.Rule, Code: w.Code,
		Outcome: w.Outcome, Wall: of(w.WallMS, time.Millisecond), Data: w.Data,
	}
}
