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
	e := &history.Event{Client: c.name(), Op: in.Op, Session: c.slots[in.Slot]}
	if in.Ended && len(c.ended) > 0 {
		e.Session = c.ended[(in.File*files+in.Slot)%len(c.ended)]
		if in.Op == history.Open || in.Op == history.Close {
			e.Op = history.Get
		}
	} else if e.Session == "" || in.Op == history.Open && in.Slot >= ownSlots {
		return c.open(ctx, in)
	} else if in.Op == history.Open {
		e.Op = history.Get
	}
	c.fill(e, in)
	c.rig.do(ctx, c.run.writer, e, c.rig.nodes[in.Node], in.Timeout)
	c.run.took(e)
	if e.Gone() || e.Op == history.Close && e.Done() {
		c.forget(e.Session)
	}
	return e
}

// fill says which file is meant, and what is written into it.
func (c *client) fill(e *history.Event, in Intent) {
	owner := c.index
	if in.Foreign {
		owner = (c.index + 1 + in.File) % c.all
	}
	switch e.Op { //nolint:exhaustive // the others are about no file
	case history.Read, history.Exec:
		e.File = fmt.Sprintf("c%d-%d", owner, in.File)
	case history.Write:
		c.writes++
		e.File = fmt.Sprintf("c%d-%d", c.index, in.File)
		e.Value = fmt.Sprintf("session=%s client=%s file=%s n=%d pad=%d", e.Session, c.name(), e.File, c.writes, in.Pad)
	}
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
