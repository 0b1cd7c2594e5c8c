package cove

import (
	"context"
	"time"
)

// Links makes URLs that carry their own permission. Whoever holds one may do the
// one thing that it says, as the caller that asked for it and without a key. A
// link is over when its time is up, when its session ends, and when the key that
// asked for it is revoked or expires. Where nobody serves links, as in process,
// every method is Unsupported.
type Links interface {
	// Download returns a URL that reads a file with GET.
	Download(ctx context.Context, req FileLink) (*Link, error)
	// Upload returns a URL that replaces a file with PUT.
	Upload(ctx context.Context, req FileLink) (*Link, error)
	// Port returns the URL of what listens on a port inside, on an origin that no
	// other port and no other session has.
	Port(ctx context.Context, req PortLink) (*Link, error)
	// Login returns a URL that signs a browser in as the caller, once. 0 means
	// MaxLoginTTL.
	Login(ctx context.Context, ttl time.Duration) (*Link, error)
}

// How long links are good for.
const (
	MaxLinkTTL     = 24 * time.Hour
	DefaultFileTTL = 15 * time.Minute
	DefaultPortTTL = time.Hour
	MaxLoginTTL    = 5 * time.Minute
	// ConsoleTTL is for how long a browser stays signed in.
	ConsoleTTL = 12 * time.Hour
)

// FileLink asks for a link to one file of a session.
type FileLink struct {
	Session ID
	Path    string
	TTL     time.Duration // 0 means DefaultFileTTL; the most is MaxLinkTTL
}

// PortLink asks for a link to one port of a session.
type PortLink struct {
	Session ID
	Port    int
	TTL     time.Duration // 0 means DefaultPortTTL; the most is MaxLinkTTL
}

// Link is a URL, which is a secret, and when it is over.
type Link struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// GrantKind is what a ticket is good for.
type GrantKind string

// The kinds of tickets. GrantLogin is good once, for one of GrantConsole.
const (
	GrantDownload GrantKind = "download"
	GrantUpload   GrantKind = "upload"
	GrantPort     GrantKind = "port"
	GrantLogin    GrantKind = "login"
	GrantConsole  GrantKind = "console"
)

// Grant is what a link says: who lets whoever holds it do what, until when.
type Grant struct {
	Kind      GrantKind
	Principal string // by name
	Tenant    string // the principal's
	Session   ID
	Path      string // of a file, clean
	Port      int
	ExpiresAt time.Time
}

// ValidLinkTTL reports a time that no link can be good for.
func ValidLinkTTL(ttl, most time.Duration) error {
	if ttl != 0 && ttl < time.Second || ttl > most {
		return InvalidField("ttl_seconds", "%s is out of range; use 1 s to %s", ttl, most)
	}
	return nil
}

// ValidPort reports a number that no port has.
func ValidPort(port int) error {
	if port < 1 || port > 65535 {
		return InvalidField("port", "%d is not a port; use 1 to 65535", port)
	}
	return nil
}
