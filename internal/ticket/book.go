package ticket

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// maxText bounds what is looked at for somebody whom nobody knows yet: a path of
// the longest kind, twice in base64, fits.
const maxText = 16 << 10

// Book signs grants with one key. It is safe for concurrent use.
type Book struct {
	lasting  []byte // signs what outlives this process
	fleeting []byte // signs what does not
	console  []byte // signs browsers in
	left     *left  // who signed out; nil where sign-ins end with this process, or with others
	shared   Shared // what many servers note together; nil where this one is alone
}

// New returns a book over a key, whose sign-ins end with this process.
func New(key []byte) *Book {
	boot := make([]byte, 32)
	_, _ = rand.Read(boot) // never fails since Go 1.24
	return &Book{lasting: slices.Clone(key), fleeting: sum(key, "cove boot", boot), console: sum(key, "cove console", boot)}
}

// Join returns the book that every server has which was given the same key, and
// notes in the same place what is good no more.
func Join(key []byte, shared Shared) *Book {
	return &Book{lasting: slices.Clone(key), fleeting: sum(key, "cove boot", nil), console: sum(key, "cove console", nil), shared: shared}
}

// Derive returns a secret of its own for another use, which is the same as long as
// the key is.
func (b *Book) Derive(use string) []byte { return sum(b.lasting, "cove derived", []byte(use)) }

// body is a grant as it stands in a ticket.
type body struct {
	V       int            `json:"v"`
	Kind    cove.GrantKind `json:"kind"`
	Who     string         `json:"who"`
	Tenant  string         `json:"tenant"`
	Session cove.ID        `json:"session,omitempty"`
	Path    []byte         `json:"path,omitempty"` // names are bytes
	Port    int            `json:"port,omitempty"`
	Until   int64          `json:"until"` // seconds since 1970
	Nonce   []byte         `json:"nonce"`
}

const version = 1

// ticket is what a text that was signed says.
type ticket struct {
	grant cove.Grant
	nonce string
}

func bad() error {
	return cove.Errorf(cove.Unauthenticated, "the link is not good: it has expired, was used, or is not one of this server's").
		Remedy("ask for a new one")
}

func sum(key []byte, label string, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(label + "\x00"))
	h.Write(data)
	return h.Sum(nil)
}

// seal is the second half of a ticket.
func (b *Book) seal(kind cove.GrantKind, encoded string) string {
	key := b.lasting
	switch kind { //nolint:exhaustive // all others last
	case cove.GrantLogin:
		key = b.fleeting
	case cove.GrantConsole:
		key = b.console
	}
	return base64.RawURLEncoding.EncodeToString(sum(key, "cove ticket 1", []byte(encoded)))
}

// Issue returns the ticket of a grant.
func (b *Book) Issue(g cove.Grant) string {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce)        // never fails since Go 1.24
	plain, _ := json.Marshal(body{ // texts, numbers and bytes always are JSON
		V: version, Kind: g.Kind, Who: g.Principal, Tenant: g.Tenant, Session: g.Session, Path: []byte(g.Path), Port: g.Port,
		Until: g.ExpiresAt.Unix(), Nonce: nonce,
	})
	encoded := base64.RawURLEncoding.EncodeToString(plain)
	return encoded + "." + b.seal(g.Kind, encoded)
}

// read returns what a ticket of this kind says. Whatever is wrong with it has one
// and the same answer: Unauthenticated.
func (b *Book) read(text string, kind cove.GrantKind) (ticket, error) {
	if len(text) > maxText {
		return ticket{}, bad()
	}
	encoded, seal, _ := strings.Cut(text, ".")
	// As texts: a ticket has one spelling, and the decoder would take several.
	if !hmac.Equal([]byte(seal), []byte(b.seal(kind, encoded))) {
		return ticket{}, bad()
	}
	plain, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return ticket{}, bad()
	}
	var w body
	if err := json.Unmarshal(plain, &w); err != nil || w.V != version || w.Kind != kind {
		return ticket{}, bad()
	}
	until := time.Unix(w.Until, 0).UTC()
	if !time.Now().Before(until) {
		return ticket{}, bad()
	}
	return ticket{nonce: string(w.Nonce), grant: cove.Grant{
		Kind: w.Kind, Principal: w.Who, Tenant: w.Tenant, Session: w.Session, Path: string(w.Path), Port: w.Port, ExpiresAt: until,
	}}, nil
}
