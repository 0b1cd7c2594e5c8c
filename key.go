package cove

import (
	"slices"
	"strings"
	"time"
)

// Key is what a caller shows to be known. Only a hash of the secret is kept.
type Key struct {
	ID        ID        `json:"id"`
	Name      string    `json:"name"`
	Tenant    string    `json:"tenant"`
	Hash      []byte    `json:"hash"` // SHA-256 of the secret, which has 160 bits of chance
	Scopes    []Scope   `json:"scopes"`
	Limits    KeyLimit  `json:"limits,omitzero"`
	Defaults  Spec      `json:"defaults,omitzero"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
}

// KeyLimit bounds what one key may do. Zero means no bound of its own.
type KeyLimit struct {
	RatePerSecond float64   `json:"rate_per_second,omitempty"`
	Concurrent    int       `json:"concurrent,omitempty"` // requests at once
	Sessions      int       `json:"sessions,omitempty"`   // live sessions at once
	Data          DataGrant `json:"data,omitzero"`        // what it may ask of data

	// Namespace is the one namespace of microsandbox's sandboxes that it reaches.
	// A key that has one opens nothing else; [AllNamespaces] bounds nothing.
	Namespace string `json:"namespace,omitempty"`
}

// KeyRequest asks for a key.
type KeyRequest struct {
	Name     string
	Tenant   string // "" means "default"
	Scopes   []Scope
	Limits   KeyLimit
	Defaults Spec
	TTL      time.Duration // 0 means it does not expire; of KeyMicrosandbox, [MicrosandboxTTL]
	Form     KeyForm       // of the secret

	// IdempotencyKey makes sure that a repeated request makes no second key. The
	// secret cannot be shown again, so that the repeat is Conflict, with the key's
	// id in Details["key_id"].
	IdempotencyKey string
}

// DefaultTenant is whose things are when nobody says otherwise.
const DefaultTenant = "default"

// Validate reports the first field that is wrong.
func (r KeyRequest) Validate() error {
	if err := validText("name", r.Name, maxNameLen); err != nil {
		return err
	}
	if err := ValidTenant(r.Tenant); r.Tenant != "" && err != nil {
		return err
	}
	if len(r.Scopes) == 0 {
		return InvalidField("scopes", "is empty; use some of %s", joined(Scopes()))
	}
	for _, s := range r.Scopes {
		if !slices.Contains(Scopes(), s) {
			return InvalidField("scopes", "%.40q is unknown; use some of %s", string(s), joined(Scopes()))
		}
	}
	if r.TTL < 0 || r.Limits.RatePerSecond < 0 || r.Limits.Concurrent < 0 || r.Limits.Sessions < 0 {
		return InvalidField("limits", "a limit or lifetime is negative; 0 means none")
	}
	if err := r.Limits.Data.Validate(); err != nil {
		return err
	}
	if err := r.validForm(); err != nil {
		return err
	}
	return r.Defaults.Validate()
}

const maxNamespaceLen = 63

func (r KeyRequest) validForm() error {
	if r.Form != KeyPlain && !slices.Contains(KeyForms(), r.Form) {
		return InvalidField("form", "%.40q is unknown; leave it out or use one of %s", string(r.Form), joined(KeyForms()))
	}
	n := r.Limits.Namespace
	switch {
	case n == "" || n == AllNamespaces && r.Form == KeyMicrosandbox:
		return nil
	case r.Form != KeyMicrosandbox:
		return InvalidField("namespace", "only a key of form %s has one", KeyMicrosandbox)
	case len(n) > maxNamespaceLen || !isName(n, "_-") || strings.Contains("_-", n[:1]):
		return InvalidField("namespace", "%.80q is not a namespace's name; use up to 63 letters, digits, - and _, or * for all", n)
	}
	return nil
}

const maxTenantLen = 64

// ValidTenant reports a name that cannot be a tenant's.
func ValidTenant(name string) error {
	if !isName(name, "._-") || len(name) > maxTenantLen || strings.Contains("._-", name[:1]) {
		return InvalidField("tenant", "%.80q is not a tenant's name; use up to 64 letters, digits, - . and _", name)
	}
	return nil
}

// Tenant is a group of callers that see the same things, and its bounds.
type Tenant struct {
	Name      string    `json:"name"`
	Quota     Bounds    `json:"quota"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

// Bounds is how much there is for a tenant or a whole machine. Zero means no
// bound.
type Bounds struct {
	Sessions   int     `json:"sessions,omitempty"`
	Memory     Bytes   `json:"memory,omitempty"`
	CPUSeconds float64 `json:"cpu_seconds,omitempty"` // used by all its programs, in all
	Disk       Bytes   `json:"disk,omitempty"`        // of a tenant: kept on the disk, see [DiskUse]; 0 means the server's setting for all tenants
}

// Validate reports a negative bound.
func (b Bounds) Validate() error {
	if b.Sessions < 0 || b.Memory < 0 || !(b.CPUSeconds >= 0) || b.Disk < 0 {
		return InvalidField("quota", "a bound is negative; 0 means none")
	}
	return nil
}
