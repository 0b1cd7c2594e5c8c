package sqlite

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

const (
	putVolume = `INSERT INTO volume (id, tenant, data) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, data = excluded.data`
	selectVolume = `SELECT data FROM volume WHERE id = ?`
	deleteVolume = `DELETE FROM volume WHERE id = ?`
)

// PutVolume implements cove.VolumeStore. It inserts or replaces.
func (s *Store) PutVolume(ctx context.Context, vol *cove.SavedVolume) error {
	if err := identify(field{"id", string(vol.ID)}, field{"tenant", vol.Tenant}); err != nil {
		return err
	}
	data, err := encode(vol)
	if err != nil {
		return err
	}
	return s.write(ctx, putVolume, string(vol.ID), vol.Tenant, data)
}

// GetVolume implements cove.VolumeStore.
func (s *Store) GetVolume(ctx context.Context, id cove.ID) (*cove.SavedVolume, error) {
	return get[cove.SavedVolume](ctx, s, "such volume", selectVolume, string(id))
}

// Volumes implements cove.VolumeStore. Volumes come by id.
func (s *Store) Volumes(ctx context.Context, f cove.VolumeFilter) iter.Seq2[*cove.SavedVolume, error] {
	q := selection{table: "volume", after: f.After, limit: f.Limit}
	q.where("tenant = ?", f.Tenant)
	return list[cove.SavedVolume](ctx, s, q, nil)
}

// DeleteVolume implements cove.VolumeStore.
func (s *Store) DeleteVolume(ctx context.Context, id cove.ID) error {
	return s.write(ctx, deleteVolume, string(id))
}
