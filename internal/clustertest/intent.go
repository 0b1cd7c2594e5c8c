package clustertest

import (
	"math/rand/v2"
	"time"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// Intent is what a client wants to do next. What it comes to depends on what the
// cluster answered before: where there is no session yet, one is opened.
type Intent struct {
	Op      history.Op
	Slot    int // which of the client's sessions; the last ones are shared with other clients
	Ended   bool
	File    int
	Foreign bool // a file that another client writes
	Node    int
	Pad     int // bytes after the value
	Timeout time.Duration
	Pause   time.Duration // afterwards
}

// Sessions of a client: those of its own, and those that all clients share by a user
// and a thread.
const (
	ownSlots    = 2
	sharedSlots = 4
	files       = 4 // that a client writes in each
)

// Intents yields what a client wants, the same for the same seed and client.
type Intents struct {
	rng   *rand.Rand
	nodes int
}

// NewIntents returns those of a client.
func NewIntents(seed uint64, client, nodes int) *Intents {
	return &Intents{rng: rand.New(rand.NewPCG(seed, uint64(client)+1)), nodes: nodes}
}

// weights is how often of a hundred times something is wanted.
var weights = []struct {
	op history.Op
	n  int
}{
	{history.Write, 22},
	{history.Read, 18},
	{history.Exec, 12},
	{history.List, 6},
	{history.Get, 5},
	{history.Open, 6},
	{history.Close, 3},
	{history.Stop, 3},
	{history.Start, 1},
	{history.Replace, 4},
	{history.Append, 7},
	{history.Tally, 3},
	{history.Set, 4},
	{history.Recall, 4},
	{history.Begin, 1},
	{history.Look, 1},
}

// Next draws the same numbers whatever becomes of them.
func (s *Intents) Next() Intent {
	in := Intent{
		Slot: s.rng.IntN(ownSlots + sharedSlots), File: s.rng.IntN(files), Foreign: s.rng.IntN(3) == 0, Node: s.rng.IntN(s.nodes),
		Pad: s.rng.IntN(4096), Ended: s.rng.IntN(12) == 0, Timeout: 10 * time.Second, Pause: time.Duration(s.rng.IntN(60)) * time.Millisecond,
	}
	if s.rng.IntN(4) == 0 {
		in.Timeout = 1500 * time.Millisecond
	}
	dice := s.rng.IntN(100)
	for _, w := range weights {
		in.Op = w.op
		if dice -= w.n; dice < 0 {
			break
		}
	}
	return in
}
