package redis

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// PutVolume implements cove.VolumeStore. It inserts or replaces.
func (s *Store) PutVolume(ctx context.Context, v *cove.SavedVolume) error {
	if err := identify(text{"id", string(v.ID)}, text{"tenant", v.Tenant}); err != nil {
		return err
	}
	data, err := encode(v)
	if err != nil {
		return err
	}
	id := string(v.ID)
	_, err = s.put(ctx, record{kind: "volume", id: id, data: data, sets: []string{"volume:all", id, "volume:of:" + v.Tenant, id}})
	return err
}

// GetVolume implements cove.VolumeStore.
func (s *Store) GetVolume(ctx context.Context, id cove.ID) (*cove.SavedVolume, error) {
	return fetch[cove.SavedVolume](ctx, s, "volume", string(id), "such volume")
}

// Volumes implements cove.VolumeStore. Volumes come by id.
func (s *Store) Volumes(ctx context.Context, f cove.VolumeFilter) iter.Seq2[*cove.SavedVolume, error] {
	q := selection[cove.SavedVolume]{kind: "volume", set: "volume:all", after: f.After, limit: f.Limit}
	if f.Tenant != "" {
		q.set = "volume:of:" + f.Tenant
	}
	return list(ctx, s, q)
}

// DeleteVolume implements cove.VolumeStore.
func (s *Store) DeleteVolume(ctx context.Context, id cove.ID) error {
	return s.remove(ctx, "volume", id)
}
