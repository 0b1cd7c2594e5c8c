package memory

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// PutSnapshot implements cove.SnapshotStore. It inserts or replaces.
func (s *Store) PutSnapshot(ctx context.Context, snap *cove.Snapshot) error {
	r, err := newRow(snap, field{"id", string(snap.ID)}, field{"tenant", snap.Tenant}, field{"session_id", string(snap.Session)})
	if err != nil {
		return err
	}
	return s.change(ctx, func() error {
		s.snapshots.put(r)
		return nil
	})
}

// GetSnapshot implements cove.SnapshotStore.
func (s *Store) GetSnapshot(ctx context.Context, id cove.ID) (*cove.Snapshot, error) {
	return fetch(ctx, s, &s.snapshots, string(id), "such snapshot")
}

// Snapshots implements cove.SnapshotStore. Snapshots come by id.
func (s *Store) Snapshots(ctx context.Context, f cove.SnapshotFilter) iter.Seq2[*cove.Snapshot, error] {
	return list(ctx, s, &s.snapshots, f.After, f.Limit, func(snap *cove.Snapshot) bool {
		return (f.Tenant == "" || f.Tenant == snap.Tenant) && (f.Session == "" || f.Session == snap.Session)
	})
}

// DeleteSnapshot implements cove.SnapshotStore.
func (s *Store) DeleteSnapshot(ctx context.Context, id cove.ID) error {
	return s.change(ctx, func() error {
		s.snapshots.remove(string(id))
		return nil
	})
}
