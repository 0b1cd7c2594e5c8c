package platformtest

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func keyCases() []testCase {
	return []testCase{
		{"create_list_revoke", createListRevoke},
		{"forms", keyForms},
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
	if got.Name != req.Name || got.Tenant != req.Tenant || !reflect.DeepEqual(got.Limits, req.Limits) || got.Defaults.Flavor != "medium" || len(got.Scopes) != 2 {
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

// keyForms: a secret has the form that was asked for, and a token says of its
// key what the key says.
func keyForms(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	admin, scopes := r.admin().Admin(), []cove.Scope{cove.ScopeExec}
	_, secret, err := admin.CreateKey(r.ctx, cove.KeyRequest{Scopes: scopes, Form: cove.KeyE2B})
	r.must(err, "create a key of E2B's form")
	if !regexp.MustCompile(`^e2b_[0-9a-f]{40}$`).MatchString(secret) {
		t.Errorf("the secret of a key of E2B's form is %q", secret)
	}
	for _, c := range []struct {
		asked, want string
		ttl, life   time.Duration
	}{
		{"", cove.AllNamespaces, 0, cove.MicrosandboxTTL},
		{cove.AllNamespaces, cove.AllNamespaces, time.Hour, time.Hour},
		{strings.Repeat("n", 63), strings.Repeat("n", 63), 10 * 366 * 24 * time.Hour, 10 * 366 * 24 * time.Hour},
	} {
		made, secret, err := admin.CreateKey(r.ctx, cove.KeyRequest{Scopes: scopes, Form: cove.KeyMicrosandbox, TTL: c.ttl, Limits: cove.KeyLimit{Namespace: c.asked}})
		r.must(err, "create a key of microsandbox's form")
		var claims struct {
			Expires, Issued int64
			Namespace       string
		}
		parts := strings.Split(strings.TrimPrefix(secret, "msb_"), ".")
		raw, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
		r.must(err, "decode a token")
		r.must(json.Unmarshal([]byte(strings.NewReplacer(`"exp"`, `"Expires"`, `"iat"`, `"Issued"`).Replace(string(raw))), &claims), "read a token")
		if len(parts) != 3 || len(secret) > 240 || !strings.HasPrefix(secret, "msb_") || claims.Namespace != c.want || made.Limits.Namespace != c.want {
			t.Errorf("namespace %q: the key is %+v, its secret %q", c.asked, made, secret)
		}
		if made.ExpiresAt.Unix() != claims.Expires || made.CreatedAt.Unix() != claims.Issued || made.ExpiresAt.Sub(made.CreatedAt).Round(time.Second) != c.life {
			t.Errorf("a token says %+v of a key that is %+v", claims, made)
		}
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
