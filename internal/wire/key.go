package wire

import (
	"reflect"
	"time"

	"github.com/cove-sandbox/cove"
)

// KeyRequest asks for a key.
type KeyRequest struct {
	Name       string         `json:"name,omitempty"`
	Tenant     string         `json:"tenant,omitempty" jsonschema:"left out, default"`
	Scopes     []cove.Scope   `json:"scopes" jsonschema:"what it may do"`
	Limits     *cove.KeyLimit `json:"limits,omitempty" jsonschema:"bounds of its own; 0 means none"`
	Defaults   *Spec          `json:"defaults,omitempty" jsonschema:"what its requests mean where they say nothing"`
	TTLSeconds *float64       `json:"ttl_seconds,omitempty" jsonschema:"left out, it does not expire; of form msb, 24 hours"`
	Form       cove.KeyForm   `json:"form,omitempty" jsonschema:"shape of the secret: e2b or msb for clients of those; left out, Cove's own"`
}

// KeyRequestOf returns the form of r.
func KeyRequestOf(r cove.KeyRequest) KeyRequest {
	return KeyRequest{
		Name: r.Name, Tenant: r.Tenant, Scopes: r.Scopes, Limits: limitsOf(r.Limits),
		Defaults: defaultsOf(r.Defaults), TTLSeconds: optional(r.TTL, time.Second), Form: r.Form,
	}
}

// limitsOf is nil for bounds that bound nothing.
func limitsOf(l cove.KeyLimit) *cove.KeyLimit {
	if reflect.ValueOf(l).IsZero() {
		return nil
	}
	return &l
}

// Cove returns the platform's own form.
func (w KeyRequest) Cove() (r cove.KeyRequest, err error) {
	r = cove.KeyRequest{Name: w.Name, Tenant: w.Tenant, Scopes: w.Scopes, Form: w.Form}
	if w.Limits != nil {
		r.Limits = *w.Limits
	}
	if w.Defaults != nil {
		if r.Defaults, err = w.Defaults.Cove(); err != nil {
			return r, err
		}
	}
	if w.TTLSeconds != nil && *w.TTLSeconds < 0 {
		r.TTL = of(*w.TTLSeconds, time.Second) // for the platform to refuse with the other bounds
		return r, nil
	}
	r.TTL, err = span("ttl_seconds", w.TTLSeconds, time.Second)
	return r, err
}

// defaultsOf leaves the form out where the spec says nothing.
func defaultsOf(s cove.Spec) *Spec {
	if len((cove.Spec{}).Differs(s)) == 0 && s.User == "" && s.Thread == "" {
		return nil
	}
	return new(SpecOf(s))
}

// Key is the answer about a key. It holds nothing of the secret.
type Key struct {
	KeyID     cove.ID       `json:"key_id"`
	Name      string        `json:"name"`
	Tenant    string        `json:"tenant"`
	Scopes    []cove.Scope  `json:"scopes"`
	Limits    cove.KeyLimit `json:"limits"`
	Defaults  *Spec         `json:"defaults,omitempty"`
	CreatedAt time.Time     `json:"created_at"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"`
	RevokedAt time.Time     `json:"revoked_at,omitzero"`
}

// NewKey is a key with its secret, which is shown this once.
type NewKey struct {
	Key

	Secret string `json:"secret"`
}

// KeyOf returns the form of k, without its hash.
func KeyOf(k *cove.Key) Key {
	return Key{
		KeyID: k.ID, Name: k.Name, Tenant: k.Tenant, Scopes: k.Scopes, Limits: k.Limits, Defaults: defaultsOf(k.Defaults),
		CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt,
	}
}

// Cove returns the platform's own form; its Hash is empty.
func (w Key) Cove() (*cove.Key, error) {
	k := &cove.Key{
		ID: w.KeyID, Name: w.Name, Tenant: w.Tenant, Scopes: w.Scopes, Limits: w.Limits,
		CreatedAt: w.CreatedAt, ExpiresAt: w.ExpiresAt, RevokedAt: w.RevokedAt,
	}
	var err error
	if w.Defaults != nil {
		k.Defaults, err = w.Defaults.Cove()
	}
	return k, err
}
