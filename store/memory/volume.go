package memory

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// PutVolume implements cove.VolumeStore. It inserts or replaces.
func (s *Store) PutVolume(ctx context.Context, vol *cove.SavedVolume) error {
	r, err := newRow(vol, field{"id", string(vol.ID)}, field{"tenant", vol.Tenant})
	if err != nil {
		return err
	}
	return s.change(ctx, func() error {
		s.volumes.put(r)
		return nil
	})
}

// GetVolume implements cove.VolumeStore.
func (s *Store) GetVolume(ctx context.Context, id cove.ID) (*cove.SavedVolume, error) {
	return fetch(ctx, s, &s.volumes, string(id), "such volume")
}

// Volumes implements cove.VolumeStore. Volumes come by id.
func (s *Store) Volumes(ctx context.Context, f cove.VolumeFilter) iter.Seq2[*cove.SavedVolume, error] {
	return list(ctx, s, &s.volumes, f.After, f.Limit, func(vol *cove.SavedVolume) bool {
		return f.Tenant == "" || f.Tenant == vol.Tenant
	})
}

// DeleteVolume implements cove.VolumeStore.
func (s *Store) DeleteVolume(ctx context.Context, id cove.ID) error {
	return s.change(ctx, func() error {
		s.volumes.remove(string(id))
		return nil
	})
}
