package auth_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/auth"
	"github.com/cove-sandbox/cove/store/memory"
)

// counting counts the looks into a store, and stops one of them half way.
type counting struct {
	cove.Store

	looks int
	read  func() // called after a look has read, before it returns
	fail  error  // of PutKey, which writes all the same
}

func (c *counting) KeyByHash(ctx context.Context, hash []byte) (*cove.Key, error) {
	c.looks++
	k, err := c.Store.KeyByHash(ctx, hash)
	if c.read != nil {
		c.read()
	}
	return k, err
}

func (c *counting) PutKey(ctx context.Context, k *cove.Key) error {
	return errors.Join(c.Store.PutKey(ctx, k), c.fail)
}

func remember(t *testing.T) (cove.Store, *counting, *cove.Key) {
	t.Helper()
	c := &counting{Store: memory.New()}
	s := auth.Remembering(c)
	k := &cove.Key{ID: cove.NewID(), Tenant: "one", Hash: []byte("hash"), Scopes: []cove.Scope{cove.ScopeRead}, Defaults: cove.Spec{Env: map[string]string{"A": "b"}}}
	if err := s.PutKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	return s, c, k
}

func look(t *testing.T, s cove.KeyStore) *cove.Key {
	t.Helper()
	k, err := s.KeyByHash(t.Context(), []byte("hash"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysAreRemembered(t *testing.T) {
	s, c, k := remember(t)
	for range 3 {
		got := look(t, s)
		if diff := cmp.Diff(k, got); diff != "" {
			t.Fatal(diff)
		}
		got.Scopes[0], got.Hash[0], got.Defaults.Env["A"] = cove.ScopeAll, 'x', "changed" // it is the caller's own
	}
	if c.looks != 1 {
		t.Errorf("%d looks into the store", c.looks)
	}
	for range 2 {
		if _, err := s.KeyByHash(t.Context(), []byte("other")); !errors.Is(err, cove.NotFound) {
			t.Errorf("an unknown key: %v", err)
		}
	}
	if c.looks != 3 {
		t.Errorf("what is unknown is remembered: %d looks", c.looks)
	}
}

func TestARevocationIsNotForgotten(t *testing.T) {
	s, c, k := remember(t)
	look(t, s)
	k.RevokedAt = time.Unix(1, 0)
	c.fail = errors.New("late") // the answer is an error, the write is done
	if err := s.PutKey(t.Context(), k); !errors.Is(err, c.fail) {
		t.Fatal(err)
	}
	if look(t, s).RevokedAt.IsZero() {
		t.Error("a revoked key is remembered as good")
	}
}

// A look that read the key before it was revoked, and returns after, is not
// remembered.
func TestARevocationDuringALook(t *testing.T) {
	s, c, k := remember(t)
	var once sync.Once
	c.read = func() {
		once.Do(func() {
			changed := *k
			changed.RevokedAt = time.Unix(1, 0)
			if err := s.PutKey(t.Context(), &changed); err != nil {
				t.Error(err)
			}
		})
	}
	look(t, s) // began before the revocation
	if look(t, s).RevokedAt.IsZero() {
		t.Error("a revoked key is remembered as good")
	}
}

func TestMemoryForKeysIsBounded(t *testing.T) {
	s, c, _ := remember(t)
	ctx := t.Context()
	hash := func(i int) []byte { return slices.Concat([]byte("h"), []byte{byte(i), byte(i >> 8)}) }
	for i := range auth.MaxRemembered + 1 {
		if err := s.PutKey(ctx, &cove.Key{ID: cove.NewID(), Tenant: "one", Hash: hash(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for i := range auth.MaxRemembered + 1 {
			if _, err := s.KeyByHash(ctx, hash(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c.looks <= auth.MaxRemembered+1 {
		t.Errorf("%d looks: more is remembered than may be", c.looks)
	}
}
