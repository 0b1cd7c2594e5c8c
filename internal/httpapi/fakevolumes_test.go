package httpapi_test

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

func (f *fake) Volumes() cove.Volumes { return fakeVolumes{f} }

type fakeVolumes struct{ *fake }

func (v fakeVolumes) Create(_ context.Context, req cove.VolumeRequest) (*cove.SavedVolume, error) {
	return give[cove.SavedVolume](v.fake, cove.VolumeCreate, args(req))
}

func (v fakeVolumes) Get(_ context.Context, ref string) (*cove.SavedVolume, error) {
	return give[cove.SavedVolume](v.fake, cove.VolumeGet, args(ref))
}

func (v fakeVolumes) List(_ context.Context, f cove.VolumeFilter) iter.Seq2[*cove.SavedVolume, error] {
	return pointers(limited(f.After, f.Limit, yields(v.fake, cove.VolumeList, args(f), func(v *cove.SavedVolume, n int) { v.ID = numbered(n) }),
		func(v cove.SavedVolume) cove.ID { return v.ID }))
}

func (v fakeVolumes) Delete(_ context.Context, ref string) error {
	return v.note(cove.VolumeDelete, args(ref))
}

func volumeTrips() map[cove.Verb]trip {
	return map[cove.Verb]trip{
		cove.VolumeCreate: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Volumes().Create(ctx, filled[cove.VolumeRequest]()))
		}, args(filled[cove.VolumeRequest]()), nil},
		cove.VolumeGet: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Volumes().Get(ctx, "a/b ..")) }, args("a/b .."), nil},
		cove.VolumeList: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return listOf(p.Volumes().List(ctx, cove.VolumeFilter{}))
		}, args(cove.VolumeFilter{Limit: 501}), nil},
		cove.VolumeDelete: {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Volumes().Delete(ctx, "a?b")) }, args("a?b"), nil},
	}
}
