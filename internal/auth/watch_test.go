package auth_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/auth"
)

// keyStore is a whole store of which only the keys are used.
type keyStore struct {
	cove.Store

	keys *keys
}

func (k keyStore) PutKey(ctx context.Context, key *cove.Key) error { return k.keys.PutKey(ctx, key) }

func caller(id cove.ID) cove.Principal { return cove.Principal{Name: string(id), Tenant: "acme"} }

// says wants a context that ended because of its key.
func says(ctx context.Context, t *testing.T, words string) {
	t.Helper()
	cause := context.Cause(ctx)
	if !errors.Is(cause, cove.Unauthenticated) || !strings.Contains(cove.MessageOf(cause), words) || cove.RemedyOf(cause) == "" {
		t.Errorf("the context ended with %v, want %q", cause, words)
	}
}

func TestRevocationEndsWhatGoesOn(t *testing.T) {
	w := auth.NewWatch()
	mem := &keys{}
	store := w.Store(keyStore{keys: mem})
	mine, other := cove.NewID(), cove.NewID()
	one, stopOne := w.Follow(t.Context(), caller(mine))
	two, stopTwo := w.Follow(t.Context(), caller(mine))
	third, stopThird := w.Follow(t.Context(), caller(other))
	defer stopTwo()
	defer stopThird()
	stopOne()
	key := &cove.Key{ID: mine, Hash: []byte("h")}
	if err := store.PutKey(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if two.Err() != nil {
		t.Error("a key that is put and good ends its callers")
	}
	key.RevokedAt = time.Now()
	mem.fail = errors.New("the disk is gone")
	if err := store.PutKey(t.Context(), key); err == nil || two.Err() != nil {
		t.Errorf("a revocation that was not written: %v, %v", err, two.Err())
	}
	mem.fail = nil
	if err := store.PutKey(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	says(two, t, "revoked")
	if cause := context.Cause(one); !errors.Is(cause, context.Canceled) {
		t.Errorf("one that was over before ended with %v", cause)
	}
	if third.Err() != nil {
		t.Error("revoking one key ended the caller of another")
	}
	late, stopLate := w.Follow(t.Context(), caller(mine)) // it was let in before, and is late
	defer stopLate()
	says(late, t, "revoked")
	stopThird()
	stopTwo()
	if n := w.Callers(); n != 0 {
		t.Errorf("%d callers are remembered after their end", n)
	}
}

func TestExpiryEndsWhatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := auth.NewWatch()
		p := caller(cove.NewID())
		p.ExpiresAt = time.Now().Add(time.Hour)
		ctx, stop := w.Follow(t.Context(), p)
		defer stop()
		over, stopOver := w.Follow(t.Context(), p)
		stopOver()
		<-time.After(time.Hour - 1)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("it ended too early")
		}
		<-time.After(2)
		synctest.Wait()
		says(ctx, t, "expired")
		if cause := context.Cause(over); !errors.Is(cause, context.Canceled) {
			t.Errorf("one that was over before ended with %v", cause)
		}
	})
}

// TestCallersWithoutAKey are users of the machine, whom nobody can revoke.
func TestCallersWithoutAKey(t *testing.T) {
	w := auth.NewWatch()
	for _, name := range []string{"os:root", "", "someone"} {
		ctx, stop := w.Follow(t.Context(), cove.Principal{Name: name})
		w.Revoke(cove.ID(name))
		if ctx.Err() != nil || w.Callers() != 0 {
			t.Errorf("%q: %v, %d callers", name, ctx.Err(), w.Callers())
		}
		stop()
	}
}

// TestRevokeAtOnce: whoever follows while a key is revoked is ended, whichever
// comes first.
func TestRevokeAtOnce(t *testing.T) {
	for range 50 {
		w := auth.NewWatch()
		id := cove.NewID()
		var wg sync.WaitGroup
		all := make(chan context.Context, 16)
		for range cap(all) {
			wg.Go(func() {
				ctx, _ := w.Follow(t.Context(), caller(id))
				all <- ctx
			})
		}
		wg.Go(func() { w.Revoke(id) })
		wg.Wait()
		for range cap(all) {
			says(<-all, t, "revoked")
		}
	}
}

func TestRevokedKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := auth.NewWatch()
		for range 3000 {
			w.Revoke(cove.NewID())
			<-time.After(time.Second)
		}
		if n := w.Revoked(); n > 1100 {
			t.Errorf("%d revoked keys are remembered", n)
		}
	})
}
