package clustersim

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// Event is a line of a trace: what happened in a real run.
type Event struct {
	At       int64      `json:"at_ms"` // since the run began
	Event    string     `json:"event"`
	Node     string     `json:"node,omitempty"`
	Memory   cove.Bytes `json:"memory,omitempty"`
	Sessions int        `json:"sessions,omitempty"`  // of a node
	Waited   int64      `json:"waited_ms,omitempty"` // before it was opened or refused
}

// What can happen. Who waits is told when they get in, or do not.
const (
	EventNode    = "node"    // it is there from the beginning, with this much room; 0 is no bound
	EventOpen    = "open"    // a session has a sandbox on a node
	EventClose   = "close"   // it was ended by somebody
	EventLost    = "lost"    // it went with its node
	EventRefused = "refused" // there was no room for one
)

// Trace is a run, by time.
type Trace []Event

// Bounds on a trace.
const (
	maxTraceLine   = 4 << 10
	maxTraceEvents = 1_000_000
)

// ReadTrace reads JSON lines. Lines may be out of order, as they are where several
// nodes wrote them.
func ReadTrace(r io.Reader) (Trace, error) {
	var t Trace
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxTraceLine)
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, cove.Wrap(cove.Invalid, err, "line %d of the trace is not an event", n).Remedy(`write {"at_ms":…,"event":"open","node":…,"memory":…}`)
		}
		if err := e.check(); err != nil {
			return nil, cove.Wrap(cove.Invalid, err, "line %d of the trace: %s", n, cove.MessageOf(err))
		}
		if len(t) == maxTraceEvents {
			return nil, cove.Errorf(cove.Invalid, "the trace has more than %d events", maxTraceEvents)
		}
		t = append(t, e)
	}
	if err := lines.Err(); err != nil {
		return nil, cove.Wrap(cove.Invalid, err, "the trace cannot be read; a line may have %d bytes", maxTraceLine)
	}
	if len(t) == 0 {
		return nil, cove.Errorf(cove.Invalid, "the trace is empty")
	}
	slices.SortStableFunc(t, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return t, nil
}

func (e Event) check() error {
	known := []string{EventNode, EventOpen, EventClose, EventLost, EventRefused}
	switch {
	case !slices.Contains(known, e.Event):
		return cove.InvalidField("event", "%.40q is unknown", e.Event)
	case e.Node == "" && e.Event != EventRefused || len(e.Node) > 256:
		return cove.InvalidField("node", "%.40q is no name", e.Node)
	case e.At < 0 || e.Memory < 0 || e.Memory > cove.TiB || e.Sessions < 0 || e.Waited < 0 || e.Waited > e.At || e.At > maxLength.Milliseconds():
		return cove.InvalidField("at_ms", "a number is negative or too large")
	}
	return nil
}

func (e Event) at() time.Duration { return time.Duration(e.At) * time.Millisecond }

func (e Event) waited() time.Duration { return time.Duration(e.Waited) * time.Millisecond }
