package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type snapshots struct{ c *Client }

// Pause implements [cove.Snapshots].
func (s snapshots) Pause(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return s.c.session(ctx, ask{method: http.MethodPost, path: of(id, "/pause")})
}

// Resume implements [cove.Snapshots].
func (s snapshots) Resume(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return s.c.session(ctx, ask{method: http.MethodPost, path: of(id, "/resume")})
}

// Snapshot implements [cove.Snapshots].
func (s snapshots) Snapshot(ctx context.Context, id cove.ID, req cove.SnapshotRequest) (*cove.Snapshot, error) {
	w, err := get[wire.Snapshot](ctx, s.c, ask{
		method: http.MethodPost, path: of(id, "/snapshot"), body: wire.SnapshotRequest{Name: req.Name}, header: once(req.IdempotencyKey),
	})
	if err != nil {
		return nil, err
	}
	return w.Cove(), nil
}

// Fork implements [cove.Snapshots].
func (s snapshots) Fork(ctx context.Context, id cove.ID, as cove.ForkRequest) (*cove.Session, error) {
	return s.c.session(ctx, ask{
		method: http.MethodPost, path: of(id, "/fork"), body: wire.ForkRequestOf(as), header: once(as.IdempotencyKey),
	})
}

// List implements [cove.Snapshots].
func (s snapshots) List(ctx context.Context, f cove.SnapshotFilter) iter.Seq2[*cove.Snapshot, error] {
	a := ask{method: http.MethodGet, path: path{"/api/snapshots"}, query: values("session_id", string(f.Session), "cursor", string(f.After))}
	return list(ctx, s.c, a, f.Limit, plain(wire.Snapshot.Cove))
}

// Delete implements [cove.Snapshots].
func (s snapshots) Delete(ctx context.Context, snapshot cove.ID) error {
	return s.c.tell(ctx, ask{method: http.MethodDelete, path: path{"/api/snapshots/", string(snapshot)}})
}
