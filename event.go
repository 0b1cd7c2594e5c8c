package cove

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// Event is one line of the journal: that something is about to be done, or how
// it went.
type Event struct {
	Seq       int64           `json:"seq"`
	Time      time.Time       `json:"time"`
	Node      string          `json:"node,omitempty"`
	Kind      string          `json:"kind"`  // a Verb, or the engine's own word such as session.expired
	Phase     Phase           `json:"phase"` // intent or outcome
	Intent    int64           `json:"intent,omitempty"`
	Principal string          `json:"principal,omitempty"`
	Tenant    string          `json:"tenant,omitempty"`
	Session   ID              `json:"session,omitempty"`
	Provider  string          `json:"provider,omitempty"`
	Effect    Effect          `json:"effect,omitempty"`
	Rule      string          `json:"rule,omitempty"`
	Code      Code            `json:"code,omitempty"` // of the error, if any
	Outcome   Outcome         `json:"outcome,omitempty"`
	Wall      time.Duration   `json:"wall,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"` // hashes and lengths, never secrets
}

// Phase is when an event was written.
type Phase string

// The phases. A Note is something that the engine did by itself.
const (
	Intent     Phase = "intent"
	AfterIt    Phase = "outcome"
	EngineNote Phase = "note"
)

// Journal is the append-only record of what was done and what was refused. Its
// lines are chained by hashes, so that a change to any of them is found.
type Journal interface {
	// Append writes e and fills in its Seq and Time. When it returns, the line
	// has been handed to the operating system; with durable it is on the disk.
	// An error means that nothing may be done. ctx bounds only the wait for the
	// disk, so that an outcome is written after its caller has gone.
	Append(ctx context.Context, e *Event, durable bool) error
	// Events yields lines in order.
	Events(ctx context.Context, f EventFilter) iter.Seq2[Event, error]
	// Digest returns the keyed hash that stands for data in an Event.
	Digest(data []byte) string
	Close() error
}

// EventFilter selects events; zero fields select all.
type EventFilter struct {
	Tenant  string
	Session ID
	Kind    string // exact, or a prefix that ends in "."
	After   int64  // a Seq
	Tail    int    // only among so many lines at the end, where After is 0; 0 means all
	Limit   int
	Follow  bool // go on with new lines until the context ends, which is no error
}

// Match reports whether e is selected, but for Limit.
func (f EventFilter) Match(e *Event) bool {
	kind := wants(f.Kind, e.Kind)
	if n := len(f.Kind); n > 0 && f.Kind[n-1] == '.' {
		kind = len(e.Kind) > n && e.Kind[:n] == f.Kind
	}
	return kind && e.Seq > f.After && wants(f.Tenant, e.Tenant) && wants(string(f.Session), string(e.Session))
}
