package clustertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// Trial is what a cluster goes through.
type Trial struct {
	Seed    uint64
	Length  time.Duration // of the time with faults
	Plan    []Fault
	Clients int
	History io.Writer
}

// run is a trial that goes on.
type run struct {
	writer *history.Writer

	mu       sync.Mutex
	sessions map[string]*kept // that were opened
}

// kept is what the end of a trial looks at in a session.
type kept struct {
	files   map[string]bool // that were written
	log     bool
	context bool
	program string // the last one that was started
}

// Run puts the cluster to a trial. Its error says that the trial could not be gone
// through, and nothing of what it shows.
func (r *Rig) Run(ctx context.Context, t Trial) error {
	u := &run{sessions: map[string]*kept{}}
	first := history.Run{Seed: t.Seed, Lease: int64(r.lease), Grace: int64(grace), Settle: int64(r.settle()), Bound: r.bound}
	for _, n := range r.nodes {
		first.Nodes = append(first.Nodes, n.name)
	}
	u.writer = history.NewWriter(t.History, first)
	m := &nemesis{rig: r, writer: u.writer}

	busy, rest := context.WithTimeout(ctx, t.Length)
	defer rest()
	var all sync.WaitGroup
	for i := range t.Clients {
		c := &client{rig: r, run: u, index: i, all: t.Clients, wants: NewIntents(t.Seed, i, len(r.nodes)), states: map[string]*state{}}
		all.Go(func() { c.work(busy) })
	}
	if len(r.nodes) > 1 {
		m.work(ctx, t.Plan)
	} else {
		m.oneByOne(ctx, t.Plan)
		rest()
	}
	all.Wait()

	failed := append(m.failed, r.healthy(ctx))
	pause(ctx, 2*r.settle()) // what the nodes have yet to find out they know by then
	failed = append(failed, r.limit(ctx, 0))
	u.lookAtAll(ctx, r)
	for _, n := range r.nodes {
		for _, death := range n.endedByItself() {
			failed = append(failed, errors.New(death))
		}
	}
	return errors.Join(append(failed, u.writer.Err(), ctx.Err())...)
}

// settle is how long it may take until all is as before after a fault. A server by
// itself is as before when it answers.
func (r *Rig) settle() time.Duration {
	if len(r.nodes) == 1 {
		return 100 * time.Millisecond
	}
	return r.lease
}

// took keeps what the end of the trial has to look at.
func (u *run) took(e *history.Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	k := u.sessions[e.Session]
	if e.Op == history.Open && e.Done() && k == nil {
		u.sessions[e.Session] = &kept{files: map[string]bool{}}
	}
	if k == nil || !e.Done() {
		return
	}
	switch e.Op { //nolint:exhaustive // the others leave nothing to look at
	case history.Write, history.Replace:
		k.files[e.File] = true
	case history.Append:
		k.log = true
	case history.Set:
		k.context = true
	case history.Begin:
		k.program = e.Program
	}
}

// lookers is how many sessions are looked at at a time.
const lookers = 4

// lookAtAll asks every node for every session and every file once more.
func (u *run) lookAtAll(ctx context.Context, r *Rig) {
	ids := make(chan string)
	var all sync.WaitGroup
	for range lookers {
		all.Go(func() {
			for id := range ids {
				u.lookAt(ctx, r, id)
			}
		})
	}
	for _, id := range slices.Sorted(maps.Keys(u.sessions)) {
		ids <- id
	}
	close(ids)
	all.Wait()
}

func (u *run) lookAt(ctx context.Context, r *Rig, id string) {
	ask := func(n *node, e history.Event) *history.Event {
		e.Client, e.Session = history.Final, id
		r.do(ctx, u.writer, &e, n, 10*time.Second)
		return &e
	}
	alive, stopped, k := true, false, u.sessions[id]
	for _, n := range r.nodes {
		e := ask(n, history.Event{Op: history.Get})
		alive, stopped = e.Served() && alive, stopped || e.State == "stopped"
	}
	one, other := r.nodes[0], r.nodes[len(r.nodes)-1]
	if alive && stopped {
		alive = ask(one, history.Event{Op: history.Start}).Done()
	}
	for _, n := range r.nodes {
		ask(n, history.Event{Op: history.List})
	}
	if !alive {
		return
	}
	for i, file := range slices.Sorted(maps.Keys(k.files)) {
		ask(r.nodes[i%len(r.nodes)], history.Event{Op: history.Read, File: file})
		if file[0] == 'c' { // what programs replace is more than an answer shows of their output
			ask(r.nodes[(i+1)%len(r.nodes)], history.Event{Op: history.Exec, File: file})
		}
	}
	if k.log {
		ask(one, history.Event{Op: history.Tally, File: logFile})
	}
	if k.context {
		ask(other, history.Event{Op: history.Recall, Context: contextName})
	}
	if k.program != "" {
		ask(one, history.Event{Op: history.Look, Program: k.program})
	}
}

// String is the fault as a line of a plan.
func (f Fault) String() string {
	return fmt.Sprintf("%6.2fs %-13s n%d (n%d) for %.2fs", f.At.Seconds(), f.Op, f.Node+1, f.Peer+1, f.For.Seconds())
}
