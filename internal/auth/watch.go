package auth

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Watch ends what a caller has under way when its key ceases to be good. It is
// safe for concurrent use.
type Watch struct {
	mu      sync.Mutex
	callers map[cove.ID]map[int]context.CancelCauseFunc // by key; guarded by mu, as all below
	next    int
	gone    map[cove.ID]time.Time // keys that were revoked lately, and when
}

// NewWatch returns a watch over nothing.
func NewWatch() *Watch {
	return &Watch{callers: map[cove.ID]map[int]context.CancelCauseFunc{}, gone: map[cove.ID]time.Time{}}
}

// Bounds on what is remembered of keys that were revoked: a request that was let
// in before must be met when it comes to Follow, which takes far less.
const (
	goneFor = 10 * time.Minute
	maxGone = 1024
)

// Follow returns a context that ends when p's key is revoked or expires, with a
// cause that is Unauthenticated and says which. The caller calls stop when it is
// done. A principal without a key, such as a user of this machine, is good for as
// long as ctx.
func (w *Watch) Follow(ctx context.Context, p cove.Principal) (_ context.Context, stop func()) {
	id := cove.ID(p.Name)
	if !id.Valid() {
		return ctx, func() {}
	}
	ctx, cut := context.WithCancelCause(ctx)
	forget := w.add(id, cut)
	if p.ExpiresAt.IsZero() {
		return ctx, func() { forget(); cut(nil) }
	}
	end := time.AfterFunc(time.Until(p.ExpiresAt), func() { cut(noLonger("expired")) })
	return ctx, func() { end.Stop(); forget(); cut(nil) }
}

// add remembers a caller, or ends it where its key was revoked between being
// looked up and now.
func (w *Watch) add(id cove.ID, cut context.CancelCauseFunc) (forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, late := w.gone[id]; late {
		cut(noLonger("was revoked"))
		return func() {}
	}
	n := w.next
	w.next++
	if w.callers[id] == nil {
		w.callers[id] = map[int]context.CancelCauseFunc{}
	}
	w.callers[id][n] = cut
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.callers[id], n); len(w.callers[id]) == 0 {
			delete(w.callers, id)
		}
	}
}

// Revoke ends all that callers with this key have under way.
func (w *Watch) Revoke(id cove.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if len(w.gone) >= maxGone {
		w.forgetOldest(now)
	}
	w.gone[id] = now
	for _, cut := range w.callers[id] {
		cut(noLonger("was revoked"))
	}
}

// Keys returns the keys whose callers have something under way.
func (w *Watch) Keys() []cove.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.callers))
}

// forgetOldest forgets the keys that were revoked long ago, or the one that was
// revoked first. The caller holds mu.
func (w *Watch) forgetOldest(now time.Time) {
	var first cove.ID
	for id, at := range w.gone {
		if now.Sub(at) > goneFor {
			delete(w.gone, id)
			continue
		}
		if first == "" || at.Before(w.gone[first]) {
			first = id
		}
	}
	if len(w.gone) >= maxGone {
		delete(w.gone, first)
	}
}

// noLonger is why a caller that was let in is sent away.
func noLonger(how string) error {
	return cove.Errorf(cove.Unauthenticated, "the key %s while this went on", how).
		Remedy("show another key; programs in the background go on")
}

// Store returns s with an eye on its keys: one that is put there as revoked ends
// what its callers have under way.
func (w *Watch) Store(s cove.Store) cove.Store { return watchedStore{s, w} }

type watchedStore struct {
	cove.Store

	watch *Watch
}

// PutKey implements cove.KeyStore.
func (s watchedStore) PutKey(ctx context.Context, k *cove.Key) error {
	if err := s.Store.PutKey(ctx, k); err != nil {
		return err
	}
	if !k.RevokedAt.IsZero() {
		s.watch.Revoke(k.ID)
	}
	return nil
}
