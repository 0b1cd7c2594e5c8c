package clustertest

import (
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// memory is what each session is promised.
const memory = 64 << 20

// Line is a line of a trace: what came to a node or went from it, for a simulation
// of many nodes to be held against.
type Line struct {
	At     float64 `json:"at_ms"`
	Event  string  `json:"event"` // open, close, lost or refused
	Node   string  `json:"node"`
	Memory int64   `json:"memory"` // that the session was promised
}

// trace writes lines. Many may use it at once.
type trace struct {
	mu    sync.Mutex
	out   *json.Encoder
	homes map[string]string // of sessions that are there
	err   error
}

func newTrace(w io.Writer) *trace {
	t := &trace{homes: map[string]string{}}
	if w != nil {
		t.out = json.NewEncoder(w)
	}
	return t
}

// took writes down what an event means to a node, if anything.
func (t *trace) took(e *history.Event) {
	if t.out == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	home, there := t.homes[e.Session]
	switch {
	case e.Op == history.Open && e.Created:
		t.homes[e.Session] = e.Home
		t.put(e, "open", e.Home)
	case e.Op == history.Open && e.Answered() && !e.Done():
		t.put(e, "refused", e.Node)
	case there && e.Op == history.Close && e.Done():
		delete(t.homes, e.Session)
		t.put(e, "close", home)
	case there && e.Gone():
		delete(t.homes, e.Session)
		t.put(e, "lost", home)
	}
}

func (t *trace) put(e *history.Event, event, node string) {
	const ms = 1e6
	err := t.out.Encode(Line{At: float64(e.End) / ms, Event: event, Node: node, Memory: memory})
	t.err = errors.Join(t.err, err)
}
