package clustertest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// client opens sessions and uses them, whatever becomes of the cluster.
type client struct {
	rig   *Rig
	run   *run
	index int
	all   int // clients
	wants *Intents

	slots  [ownSlots + sharedSlots]string // the session in each; "": none
	ended  []string                       // sessions that it was told the end of
	writes int
	states map[string]*state // of its own sessions
}

// state is what a client has in a session of its own.
type state struct {
	stopped  bool
	program  string // that runs in the background; "": none
	variable bool   // one has a value
}

func (c *client) state(id string) *state {
	if c.states[id] == nil {
		c.states[id] = &state{}
	}
	return c.states[id]
}

// maxEnded is how many ended sessions a client asks for again.
const maxEnded = 16

func (c *client) name() string { return fmt.Sprintf("c%d", c.index) }

// work goes on until ctx ends. A request that is under way is waited for.
func (c *client) work(ctx context.Context) {
	for ctx.Err() == nil {
		in := c.wants.Next()
		e := c.step(context.WithoutCancel(ctx), in)
		wait := in.Pause
		if !e.Answered() || e.Status == http.StatusServiceUnavailable {
			wait += 50 * time.Millisecond
		}
		pause(ctx, wait)
	}
}

func (c *client) step(ctx context.Context, in Intent) *history.Event {
	if slices.Contains(ofOwn, in.Op) {
		in.Slot %= ownSlots
	}
	e := &history.Event{Client: c.name(), Op: in.Op, Session: c.slots[in.Slot]}
	if in.Ended && len(c.ended) > 0 {
		e.Session = c.ended[(in.File*files+in.Slot)%len(c.ended)]
		if !slices.Contains([]history.Op{history.Write, history.Read, history.Exec, history.List}, in.Op) {
			e.Op = history.Get
		}
	} else if e.Session == "" || in.Op == history.Open && in.Slot >= ownSlots {
		return c.open(ctx, in)
	} else {
		e.Op = c.possible(in, c.state(e.Session))
	}
	c.fill(e, in)
	c.rig.do(ctx, c.run.writer, e, c.rig.nodes[in.Node], in.Timeout)
	c.run.took(e)
	c.took(e)
	if e.Gone() || e.Op == history.Close && e.Done() {
		c.forget(e.Session)
	}
	return e
}

// possible is what comes nearest to an intent where it is about a session that has no
// program or variable, or is stopped.
func (c *client) possible(in Intent, s *state) history.Op {
	switch {
	case in.Op == history.Open:
		return history.Get
	case s.stopped && in.Pad%4 != 0:
		return history.Start
	case in.Op == history.Look && s.program == "":
		return history.Begin
	case in.Op == history.Begin && s.program != "":
		return history.Look
	case in.Op == history.Recall && !s.variable:
		return history.Set
	}
	return in.Op
}

// took keeps what an answer says of a session.
func (c *client) took(e *history.Event) {
	s := c.state(e.Session)
	if e.Reason == "session_stopped" || e.Op == history.Stop && e.Done() {
		*s = state{stopped: true}
		return
	}
	if !e.Done() {
		return
	}
	switch e.Op { //nolint:exhaustive // the others change nothing of it
	case history.Start:
		s.stopped = false
	case history.Begin:
		s.program = e.Program
	case history.Set:
		s.variable = true
	}
}

// ofOwn are what clients do only in sessions that they share with no other.
var ofOwn = []history.Op{history.Set, history.Recall, history.Begin, history.Look}

// fill says which file is meant, and what is written into it.
func (c *client) fill(e *history.Event, in Intent) {
	owner := c.index
	if in.Foreign {
		owner = (c.index + 1 + in.File) % c.all
	}
	switch e.Op { //nolint:exhaustive // the others are about no file
	case history.Read, history.Exec:
		e.File = fmt.Sprintf("c%d-%d", owner, in.File)
		if e.Op == history.Read && in.Pad%8 == 0 {
			e.File = replaced(owner)
		}
	case history.Write:
		c.writes++
		e.File = fmt.Sprintf("c%d-%d", c.index, in.File)
		e.Value = c.content(e, in.Pad)
	case history.Replace:
		c.writes++
		e.File = replaced(c.index)
		e.Value = c.content(e, maxPipe+in.Pad)
	case history.Append, history.Set, history.Begin:
		c.writes++
		e.Value = fmt.Sprintf("%s-%d", c.name(), c.writes)
	}
	switch e.Op { //nolint:exhaustive // the others are about none
	case history.Append, history.Tally:
		e.File = logFile
	case history.Set, history.Recall:
		e.Context = contextName
	case history.Look:
		e.Program = c.state(e.Session).program
	}
}

// maxPipe is more than a pipe holds.
const maxPipe = 100_000

// The names of what a client has once in each session.
const (
	logFile     = "log"
	contextName = "memory"
)

// replaced is the file that the programs of a client replace.
func replaced(client int) string { return fmt.Sprintf("r%d", client) }

func (c *client) content(e *history.Event, pad int) string {
	return fmt.Sprintf("session=%s client=%s file=%s n=%d pad=%d", e.Session, c.name(), e.File, c.writes, pad)
}

func (c *client) open(ctx context.Context, in Intent) *history.Event {
	e := &history.Event{Client: c.name(), Op: history.Open}
	if in.Slot >= ownSlots {
		e.Key = fmt.Sprintf("fault/thread-%d", in.Slot-ownSlots)
	}
	c.rig.do(ctx, c.run.writer, e, c.rig.nodes[in.Node], in.Timeout)
	c.run.took(e)
	if e.Done() {
		c.slots[in.Slot] = e.Session
	}
	if e.Created { // a token, so that a second sandbox would be seen from here on
		token := &history.Event{Client: c.name(), Op: history.Exec, Session: e.Session}
		c.rig.do(ctx, c.run.writer, token, c.rig.nodes[in.Node], in.Timeout)
		c.run.took(token)
	}
	return e
}

func (c *client) forget(id string) {
	delete(c.states, id)
	for i, slot := range c.slots {
		if slot == id {
			c.slots[i] = ""
		}
	}
	if slices.Contains(c.ended, id) {
		return
	}
	if len(c.ended) == maxEnded {
		c.ended = c.ended[1:]
	}
	c.ended = append(c.ended, id)
}
