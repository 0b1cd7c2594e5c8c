package sqlite

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

const (
	putSnapshot = `INSERT INTO snapshot (id, tenant, session, data) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, session = excluded.session, data = excluded.data`
	selectSnapshot = `SELECT data FROM snapshot WHERE id = ?`
	deleteSnapshot = `DELETE FROM snapshot WHERE id = ?`
)

// PutSnapshot implements cove.SnapshotStore. It inserts or replaces.
func (s *Store) PutSnapshot(ctx context.Context, snap *cove.Snapshot) error {
	if err := identify(field{"id", string(snap.ID)}, field{"tenant", snap.Tenant}, field{"session_id", string(snap.Session)}); err != nil {
		return err
	}
	data, err := encode(snap)
	if err != nil {
		return err
	}
	return s.write(ctx, putSnapshot, string(snap.ID), snap.Tenant, string(snap.Session), data)
}

// GetSnapshot implements cove.SnapshotStore.
func (s *Store) GetSnapshot(ctx context.Context, id cove.ID) (*cove.Snapshot, error) {
	return get[cove.Snapshot](ctx, s, "such snapshot", selectSnapshot, string(id))
}

// Snapshots implements cove.SnapshotStore. Snapshots come by id.
func (s *Store) Snapshots(ctx context.Context, f cove.SnapshotFilter) iter.Seq2[*cove.Snapshot, error] {
	q := selection{table: "snapshot", after: f.After, limit: f.Limit}
	q.where("tenant = ?", f.Tenant)
	q.where("session = ?", string(f.Session))
	return list[cove.Snapshot](ctx, s, q, nil)
}

// DeleteSnapshot implements cove.SnapshotStore.
func (s *Store) DeleteSnapshot(ctx context.Context, id cove.ID) error {
	return s.write(ctx, deleteSnapshot, string(id))
}
