package redis

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// PutSnapshot implements cove.SnapshotStore. It inserts or replaces.
func (s *Store) PutSnapshot(ctx context.Context, snap *cove.Snapshot) error {
	if err := identify(text{"id", string(snap.ID)}, text{"tenant", snap.Tenant}, text{"session_id", string(snap.Session)}); err != nil {
		return err
	}
	data, err := encode(snap)
	if err != nil {
		return err
	}
	id := string(snap.ID)
	_, err = s.put(ctx, record{kind: "snapshot", id: id, data: data, sets: []string{
		"snapshot:all", id, "snapshot:of:" + snap.Tenant, id, "snapshot:from:" + string(snap.Session), id,
	}})
	return err
}

// GetSnapshot implements cove.SnapshotStore.
func (s *Store) GetSnapshot(ctx context.Context, id cove.ID) (*cove.Snapshot, error) {
	return fetch[cove.Snapshot](ctx, s, "snapshot", string(id), "such snapshot")
}

// Snapshots implements cove.SnapshotStore. Snapshots come by id.
func (s *Store) Snapshots(ctx context.Context, f cove.SnapshotFilter) iter.Seq2[*cove.Snapshot, error] {
	q := selection[cove.Snapshot]{kind: "snapshot", set: "snapshot:all", after: f.After, limit: f.Limit}
	switch {
	case f.Session != "":
		q.set = "snapshot:from:" + string(f.Session)
		q.match = func(snap *cove.Snapshot) bool { return f.Tenant == "" || f.Tenant == snap.Tenant }
	case f.Tenant != "":
		q.set = "snapshot:of:" + f.Tenant
	}
	return list(ctx, s, q)
}

// DeleteSnapshot implements cove.SnapshotStore.
func (s *Store) DeleteSnapshot(ctx context.Context, id cove.ID) error {
	return s.remove(ctx, "snapshot", id)
}
