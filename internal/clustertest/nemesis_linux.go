package clustertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// nemesis does to a cluster what a plan says, and undoes it.
type nemesis struct {
	rig    *Rig
	writer *history.Writer

	mu     sync.Mutex
	failed []error
}

// work goes through the plan, whose times count from now. When it returns, all is
// healed. It ends early where ctx does.
func (m *nemesis) work(ctx context.Context, plan []Fault) {
	var all sync.WaitGroup
	began := time.Now()
	for _, f := range plan {
		all.Go(func() {
			if pause(ctx, f.At-time.Since(began)) {
				m.do(ctx, f)
			}
		})
	}
	all.Wait()
}

// oneByOne goes through a plan whose times count from the end of what was done before.
func (m *nemesis) oneByOne(ctx context.Context, plan []Fault) {
	for _, f := range plan {
		if pause(ctx, f.At) {
			m.do(ctx, f)
		}
	}
}

func (m *nemesis) do(ctx context.Context, f Fault) {
	e := &history.Event{Client: "nemesis", Op: f.Op}
	n, peer := m.rig.nodes[f.Node], m.rig.nodes[f.Peer]
	if !slices.Contains([]history.Op{history.RedisRestart, history.RedisLoss, history.EmptyCluster}, f.Op) {
		e.Node = n.name
	}
	if f.Op == history.CutNodes {
		e.Peer = peer.name
	}
	for _, turn := range m.turns(f, n) {
		turn.Lock()
		defer turn.Unlock()
	}
	always := context.WithoutCancel(ctx)
	apply, heal := m.ways(f.Op, n, peer)
	m.writer.Call(e)
	m.note(e, apply(always))
	e.Applied = m.writer.Now()
	pause(ctx, f.For)
	e.Healing = m.writer.Now()
	m.note(e, heal(always))
	m.writer.Return(e)
}

// turns are what a fault has for itself: a node may be slow to start, and what comes next
// in the plan must not find it half way. They are in one order for all.
func (m *nemesis) turns(f Fault, n *node) []*sync.Mutex {
	var all []*sync.Mutex
	switch f.Op { //nolint:exhaustive // the others are about one node
	case history.CutRedis, history.CutNodes, history.RedisRestart, history.RedisLoss:
	case history.EmptyCluster:
		for _, n := range m.rig.nodes {
			all = append(all, &n.turn)
		}
	default:
		all = append(all, &n.turn)
	}
	if ofRedis(f.Op) {
		all = append(all, &m.rig.redis.turn)
	}
	return all
}

// way does something, or undoes it.
type way func(context.Context) error

// plainly is a way that cannot fail.
func plainly(f func()) way {
	return func(context.Context) error {
		f()
		return nil
	}
}

func (m *nemesis) ways(op history.Op, n, peer *node) (apply, heal way) {
	net, redis := m.rig.net, m.rig.redis
	switch op { //nolint:exhaustive // the others are what clients do
	case history.Crash:
		return plainly(func() { n.end(syscall.SIGKILL) }), n.start
	case history.Power:
		return n.pull, n.start
	case history.Leave:
		return plainly(func() { n.end(syscall.SIGTERM) }), n.start
	case history.Freeze:
		return plainly(func() { n.signal(syscall.SIGSTOP) }), plainly(func() { n.signal(syscall.SIGCONT) })
	case history.CutRedis:
		return func(ctx context.Context) error { return net.cut(ctx, n.member, redis.member) },
			func(ctx context.Context) error { return net.mend(ctx, n.member, redis.member) }
	case history.CutNodes:
		return func(ctx context.Context) error { return net.cut(ctx, n.member, peer.member) },
			func(ctx context.Context) error { return net.mend(ctx, n.member, peer.member) }
	case history.RedisRestart:
		return plainly(redis.kill), redis.start
	case history.RedisLoss:
		return func(context.Context) error { return redis.lose() }, redis.start
	case history.EmptyStart:
		return func(ctx context.Context) error { return m.empty(ctx, n) }, n.start
	case history.EmptyCluster:
		return func(ctx context.Context) error { return m.empty(ctx, m.rig.nodes...) }, m.rig.startAll
	case history.DiskFull:
		return func(context.Context) error { return n.disk.fill() }, func(context.Context) error { return n.disk.free() }
	case history.DatabaseLoss:
		return func(context.Context) error {
				n.end(syscall.SIGKILL)
				return n.loseDatabase()
			}, func(ctx context.Context) error {
				return errors.Join(n.start(ctx), n.takeUp(ctx), until(ctx, patience, n.well))
			}
	}
	nothing := func(context.Context) error { return fmt.Errorf("%s is no fault", op) }
	return nothing, nothing
}

// empty kills nodes, and gives them a Redis that knows nothing.
func (m *nemesis) empty(ctx context.Context, nodes ...*node) error {
	for _, n := range nodes {
		n.end(syscall.SIGKILL)
	}
	return errors.Join(m.rig.redis.lose(), m.rig.redis.start(ctx))
}

func (m *nemesis) note(e *history.Event, err error) {
	if err == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = append(m.failed, fmt.Errorf("%s of %s: %w", e.Op, e.Node, err))
}
