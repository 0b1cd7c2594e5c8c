package platformtest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func keyCases() []testCase {
	return []testCase{
		{"create_list_revoke", createListRevoke},
		{"secrets_stay_secret", secretsStaySecret},
		{"unknown", unknownKey},
	}
}

func (r *rig) key(id cove.ID) *cove.Key {
	r.t.Helper()
	for _, k := range all(r, r.admin().Admin().Keys(r.ctx)) {
		if k.ID == id {
			return k
		}
	}
	r.t.Fatalf("key %s is not listed", id)
	return nil
}

func createListRevoke(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	admin := r.admin().Admin()
	req := cove.KeyRequest{
		Name: "ci", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRead, cove.ScopeExec}, TTL: time.Hour,
		Limits: cove.KeyLimit{RatePerSecond: 5, Concurrent: 2, Sessions: 3}, Defaults: cove.Spec{Flavor: "medium"},
	}
	made, secret, err := admin.CreateKey(r.ctx, req)
	r.must(err, "create a key")
	if !made.ID.Valid() || made.CreatedAt.IsZero() || !strings.HasPrefix(secret, "cove_") {
		t.Errorf("the new key is %+v with a secret of %d bytes", made, len(secret))
	}
	if d := made.ExpiresAt.Sub(made.CreatedAt); d < 59*time.Minute || d > 61*time.Minute {
		t.Errorf("a key for 1h expires after %s", d)
	}
	got := r.key(made.ID)
	same(t, "the listed key", got, made)
	if got.Name != req.Name || got.Tenant != req.Tenant || got.Limits != req.Limits || got.Defaults.Flavor != "medium" || len(got.Scopes) != 2 {
		t.Errorf("the key is %+v; asked for was %+v", got, req)
	}
	plain, other, err := admin.CreateKey(r.ctx, cove.KeyRequest{Scopes: []cove.Scope{cove.ScopeRead}})
	r.must(err, "create a plain key")
	if plain.Tenant != cove.DefaultTenant || !plain.ExpiresAt.IsZero() || other == secret || plain.ID == made.ID {
		t.Errorf("a key that asks for nothing is %+v", plain)
	}
	r.must(admin.RevokeKey(r.ctx, made.ID), "revoke a key")
	for _, k := range all(r, admin.Keys(r.ctx)) {
		if k.ID == made.ID && k.RevokedAt.IsZero() {
			t.Error("a revoked key does not say so")
		}
	}
	if !r.key(plain.ID).RevokedAt.IsZero() {
		t.Error("revoking one key revoked another")
	}
}

// secretsStaySecret: neither the secret nor what is kept of it leaves again.
func secretsStaySecret(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	admin := r.admin().Admin()
	made, secret, err := admin.CreateKey(r.ctx, cove.KeyRequest{Name: "k", Scopes: []cove.Scope{cove.ScopeRead}})
	r.must(err, "create a key")
	listed := all(r, admin.Keys(r.ctx))
	for _, k := range append(listed, made) {
		if len(k.Hash) > 0 {
			t.Errorf("the hash of key %s was given out", k.ID)
		}
	}
	raw, err := json.Marshal([]any{made, listed, all(r, admin.Events(r.ctx, cove.EventFilter{}))})
	r.must(err, "marshal")
	if strings.Contains(string(raw), secret) {
		t.Error("the secret of a key is in the list of keys or in the journal")
	}
}

func unknownKey(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	wantCode(t, r.admin().Admin().RevokeKey(r.ctx, cove.NewID()), cove.NotFound)
	wantCode(t, r.admin().Admin().RevokeKey(r.ctx, "../x"), cove.NotFound, cove.Invalid)
}
