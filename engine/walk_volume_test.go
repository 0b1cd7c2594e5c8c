package engine_test

import (
	"context"
	"testing"

	"github.com/cove-sandbox/cove"
)

func makeVolume(ctx context.Context, s *scene) error {
	_, err := s.p.Volumes().Create(ctx, cove.VolumeRequest{Name: "data"})
	return err
}

// volumes are the ids of those that are there, none of which may be half.
func (a *aftermath) volumes(t *testing.T) []string {
	t.Helper()
	var ids []string
	for v, err := range a.store.Volumes(t.Context(), cove.VolumeFilter{}) {
		if err != nil || v.Pending {
			t.Fatalf("a volume is %+v (%v)", v, err)
		}
		ids = append(ids, string(v.ID))
	}
	return ids
}

func (d stepStore) PutVolume(ctx context.Context, rec *cove.SavedVolume) error {
	if err := d.s.enter("store put volume"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Store.PutVolume(ctx, rec)
}

func (d stepStore) DeleteVolume(ctx context.Context, id cove.ID) error {
	if err := d.s.enter("store delete volume"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Store.DeleteVolume(ctx, id)
}

type stepFolders struct {
	cove.Folders

	s *stopper
}

func (d stepFolders) Make(ctx context.Context, id cove.ID) error {
	if err := d.s.enter("folder make"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Folders.Make(ctx, id)
}

func (d stepFolders) Remove(ctx context.Context, id cove.ID) error {
	if err := d.s.enter("folder remove"); err != nil {
		return err
	}
	defer d.s.leave()
	return d.Folders.Remove(ctx, id)
}
