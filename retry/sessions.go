package retry

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// sessions remembers what opens sessions.
type sessions struct {
	in  cove.Sessions
	mem *memory
}

// Open implements [cove.Sessions].
func (s sessions) Open(ctx context.Context, req cove.OpenRequest) (*cove.Session, error) {
	made, err := s.in.Open(ctx, req)
	if err == nil {
		s.mem.opened(made.ID, req)
	}
	return made, err
}

// Get implements [cove.Sessions].
func (s sessions) Get(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return s.in.Get(ctx, s.mem.now(id))
}

// List implements [cove.Sessions].
func (s sessions) List(ctx context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	return s.in.List(ctx, f)
}

// Renew implements [cove.Sessions].
func (s sessions) Renew(ctx context.Context, id cove.ID, d time.Duration) (*cove.Session, error) {
	return s.in.Renew(ctx, s.mem.now(id), d)
}

// Stop implements [cove.Sessions].
func (s sessions) Stop(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return s.in.Stop(ctx, s.mem.now(id))
}

// Start implements [cove.Sessions].
func (s sessions) Start(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return s.in.Start(ctx, s.mem.now(id))
}

// Close implements [cove.Sessions]. What was closed is not opened again.
func (s sessions) Close(ctx context.Context, id cove.ID, keep bool) (cove.ID, error) {
	now := s.mem.now(id)
	snapshot, err := s.in.Close(ctx, now, keep)
	if err == nil {
		s.mem.forget(id, now)
	}
	return snapshot, err
}

// Usage implements [cove.Sessions].
func (s sessions) Usage(ctx context.Context, id cove.ID) (cove.Usage, error) {
	return s.in.Usage(ctx, s.mem.now(id))
}

// SetNetwork implements [cove.Sessions]. A session that takes the place of this
// one gets the same network: it must not reach what was forbidden meanwhile.
func (s sessions) SetNetwork(ctx context.Context, id cove.ID, n cove.Network) (*cove.Session, error) {
	changed, err := s.in.SetNetwork(ctx, s.mem.now(id), n)
	if err == nil {
		n.Allow, n.Secrets = slices.Clone(n.Allow), slices.Clone(n.Secrets)
		s.mem.change(id, func(spec *cove.Spec) { spec.Network = n })
	}
	return changed, err
}

// Connections implements [cove.Sessions].
func (s sessions) Connections(ctx context.Context, id cove.ID, after int64) iter.Seq2[cove.Connection, error] {
	return s.in.Connections(ctx, s.mem.now(id), after)
}

type snapshots struct {
	in  cove.Snapshots
	mem *memory
}

// Pause implements [cove.Snapshots].
func (s snapshots) Pause(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return s.in.Pause(ctx, s.mem.now(id))
}

// Resume implements [cove.Snapshots].
func (s snapshots) Resume(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return s.in.Resume(ctx, s.mem.now(id))
}

// Snapshot implements [cove.Snapshots].
func (s snapshots) Snapshot(ctx context.Context, id cove.ID, req cove.SnapshotRequest) (*cove.Snapshot, error) {
	return s.in.Snapshot(ctx, s.mem.now(id), req)
}

// Fork implements [cove.Snapshots]. The copy is not opened again when it has
// expired: what it was made of is not there then.
func (s snapshots) Fork(ctx context.Context, id cove.ID, as cove.ForkRequest) (*cove.Session, error) {
	return s.in.Fork(ctx, s.mem.now(id), as)
}

// List implements [cove.Snapshots].
func (s snapshots) List(ctx context.Context, f cove.SnapshotFilter) iter.Seq2[*cove.Snapshot, error] {
	return s.in.List(ctx, f)
}

// Delete implements [cove.Snapshots].
func (s snapshots) Delete(ctx context.Context, snapshot cove.ID) error {
	return s.in.Delete(ctx, snapshot)
}
