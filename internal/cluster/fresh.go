package cluster

import (
	"context"
	"sync/atomic"

	"github.com/cove-sandbox/cove"
)

// fresh asks the directory for the nodes, once for all who want to know at a time.
type fresh struct {
	turn  chan struct{} // holds one; taken by who asks
	asked atomic.Int64  // how often that was begun
	last  atomic.Pointer[[]cove.Node]
}

func newFresh() *fresh {
	f := &fresh{turn: make(chan struct{}, 1)}
	f.turn <- struct{}{}
	return f
}

// members returns the nodes as they are or were after the call began.
func (f *fresh) members(ctx context.Context, d cove.Directory) ([]cove.Node, error) {
	before := f.asked.Load()
	select {
	case <-f.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { f.turn <- struct{}{} }()
	if list := f.last.Load(); list != nil && f.asked.Load() > before {
		return *list, nil
	}
	f.asked.Add(1)
	nodes, err := d.Members(ctx)
	if err != nil {
		return nil, err
	}
	f.last.Store(&nodes)
	return nodes, nil
}

// membersNow returns the nodes as they are now, or where the directory does not say, as
// they were when it was last asked.
func (m *Member) membersNow(ctx context.Context) []cove.Node {
	if nodes, err := m.fresh.members(ctx, m.cfg.Directory); err == nil {
		return nodes
	}
	return m.members()
}
