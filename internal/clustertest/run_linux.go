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
	Clients int
	History io.Writer
}

// run is a trial that goes on.
type run struct {
	writer *history.Writer

	mu       sync.Mutex
	sessions map[string]map[string]bool // that were opened, with the files that were written
}

// Run puts the cluster to a trial. Its error says that the trial could not be gone
// through, and nothing of what it shows.
func (r *Rig) Run(ctx context.Context, t Trial) error {
	u := &run{sessions: map[string]map[string]bool{}}
	first := history.Run{Seed: t.Seed, Lease: int64(r.lease), Grace: int64(grace), Settle: int64(r.lease)}
	for _, n := range r.nodes {
		first.Nodes = append(first.Nodes, n.name)
	}
	u.writer = history.NewWriter(t.History, first)
	m := &nemesis{rig: r, writer: u.writer}

	busy, rest := context.WithTimeout(ctx, t.Length)
	defer rest()
	var all sync.WaitGroup
	for i := range t.Clients {
		c := &client{rig: r, run: u, index: i, all: t.Clients, wants: NewIntents(t.Seed, i, len(r.nodes))}
		all.Go(func() { c.work(busy) })
	}
	m.work(ctx, Plan(t.Seed, len(r.nodes), t.Length, r.lease))
	all.Wait()

	failed := append(m.failed, r.healthy(ctx))
	pause(ctx, 2*r.lease) // whatever has yet to be found out by anybody is by then
	u.lookAtAll(ctx, r)
	for _, n := range r.nodes {
		for _, death := range n.endedByItself() {
			failed = append(failed, errors.New(death))
		}
	}
	return errors.Join(append(failed, u.writer.Err(), ctx.Err())...)
}

// took keeps what the end of the trial has to look at.
func (u *run) took(e *history.Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if e.Op == history.Open && e.Done() && u.sessions[e.Session] == nil {
		u.sessions[e.Session] = map[string]bool{}
	}
	if e.Op == history.Write && e.Done() {
		u.sessions[e.Session][e.File] = true
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
	ask := func(n *node, op history.Op, file string) *history.Event {
		e := &history.Event{Client: history.Final, Op: op, Session: id, File: file}
		r.do(ctx, u.writer, e, n, 10*time.Second)
		return e
	}
	alive := true
	for _, n := range r.nodes {
		alive = ask(n, history.Get, "").Served() && alive
		ask(n, history.List, "")
	}
	if !alive {
		return
	}
	for i, file := range slices.Sorted(maps.Keys(u.sessions[id])) {
		ask(r.nodes[i%len(r.nodes)], history.Read, file)
		ask(r.nodes[(i+1)%len(r.nodes)], history.Exec, file)
	}
}

// String is the fault as a line of a plan.
func (f Fault) String() string {
	return fmt.Sprintf("%6.2fs %-13s n%d (n%d) for %.2fs", f.At.Seconds(), f.Op, f.Node+1, f.Peer+1, f.For.Seconds())
}
