package bucket

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Sweep removes blobs that no session refers to and that are older than an hour,
// and drafts that nobody finished, and returns how many. Any node may call it, at
// any time, also several at once. While a reference cannot be read it removes no
// blob: it may be the one that is meant.
func (a *Archives) Sweep(ctx context.Context) (int64, error) {
	now, err := a.objects.now(ctx)
	if err != nil {
		return 0, err
	}
	before := now.Add(-tooOld)
	gone, err := a.sweepDrafts(ctx, before)
	if err != nil {
		return gone, err
	}
	n, err := a.sweepBlobs(ctx, before)
	return gone + n, err
}

func (a *Archives) sweepDrafts(ctx context.Context, before time.Time) (gone int64, err error) {
	var old []string
	for e, err := range a.objects.list(ctx, drafts) {
		if err != nil {
			return 0, err
		}
		id, _, _ := strings.Cut(e.name, ".")
		if cove.ID(id).Valid() && e.modified.Before(before) {
			old = append(old, e.name)
		}
	}
	for _, name := range old {
		if err := a.objects.delete(ctx, drafts+"/"+name); err != nil {
			return gone, err
		}
		gone++
	}
	return gone, nil
}

// maxBatch bounds how many blobs are held at a time while a sweep goes through all.
const maxBatch = 100_000

// sweepBlobs removes, of the blobs that were named and written before a time, those
// that nobody refers to.
func (a *Archives) sweepBlobs(ctx context.Context, before time.Time) (gone int64, err error) {
	old := map[blob]bool{}
	for e, err := range a.objects.list(ctx, blobs) {
		if err != nil {
			return gone, err
		}
		if b, ok := parseBlob(e.name); ok && b.began().Before(before) && e.modified.Before(before) {
			old[b] = true
		}
		if len(old) < a.batch {
			continue
		}
		n, err := a.removeUnused(ctx, old)
		if gone += n; err != nil {
			return gone, err
		}
		clear(old)
	}
	n, err := a.removeUnused(ctx, old)
	return gone + n, err
}

// removeUnused removes those of some old blobs that no session refers to. The clock
// was read before: whoever may refer to one of them has done so.
func (a *Archives) removeUnused(ctx context.Context, old map[blob]bool) (gone int64, err error) {
	if len(old) == 0 {
		return 0, nil
	}
	if err := a.spare(ctx, old); err != nil {
		return 0, err
	}
	for b := range old {
		if err := a.objects.delete(ctx, b.path()); err != nil {
			return gone, err
		}
		gone++
	}
	return gone, nil
}

// spare takes those out that a session refers to.
func (a *Archives) spare(ctx context.Context, old map[blob]bool) error {
	for id, err := range a.List(ctx) {
		if err != nil {
			return err
		}
		ref, ok, err := a.refer(ctx, sessions+"/"+string(id))
		switch {
		case errors.Is(err, errMissing): // deleted meanwhile
		case err != nil:
			return err
		case !ok:
			return damaged(id, "its reference cannot be read")
		}
		delete(old, ref.blob)
	}
	return nil
}
