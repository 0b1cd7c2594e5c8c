package auth_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/auth"
	"github.com/cove-sandbox/cove/store/memory"
)

func TestByID(t *testing.T) {
	store := memory.New()
	keys := auth.New(store)
	put := func(id cove.ID, set func(*cove.Key)) {
		k := &cove.Key{ID: id, Tenant: "acme", Hash: cove.HashSecret(string(id)), Scopes: []cove.Scope{cove.ScopeExec}}
		set(k)
		if err := store.PutKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	put("good", func(k *cove.Key) { k.ExpiresAt = time.Now().Add(time.Hour) })
	put("busy", func(k *cove.Key) { k.Limits.Concurrent = 1 })
	put("revoked", func(k *cove.Key) { k.RevokedAt = time.Now() })
	put("expired", func(k *cove.Key) { k.ExpiresAt = time.Now().Add(-time.Second) })
	p, done, err := keys.ByID(t.Context(), "good")
	if err != nil || p.Name != "good" || p.Tenant != "acme" || !p.May(cove.ScopeExec) {
		t.Errorf("%+v %v", p, err)
	}
	done()
	for _, id := range []cove.ID{"revoked", "expired", "never", ""} {
		if p, done, err := keys.ByID(t.Context(), id); !errors.Is(err, cove.Unauthenticated) || p.Name != "" || done == nil {
			t.Errorf("%s: %+v %v", id, p, err)
		}
	}
	_, done, err = keys.ByID(t.Context(), "busy")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := keys.ByID(t.Context(), "busy"); cove.ReasonOf(err) != cove.ReasonRateLimited {
		t.Errorf("a second request at once: %v", err)
	}
	done()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := keys.ByID(t.Context(), "good"); err == nil || errors.Is(err, cove.Unauthenticated) {
		t.Errorf("without a store: %v", err)
	}
}
