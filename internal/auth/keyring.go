package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// maxSecretLen bounds what is hashed for a caller that nobody knows yet.
const maxSecretLen = 256

// Keyring knows the keys of a store. It is safe for concurrent use.
type Keyring struct {
	store cove.KeyStore
	nodes func() int // that share a key's bounds

	mu     sync.Mutex
	meters map[cove.ID]*meter // guarded by mu
}

// New returns a keyring over the keys in store.
func New(store cove.KeyStore) *Keyring {
	return &Keyring{store: store, nodes: func() int { return 1 }, meters: map[cove.ID]*meter{}}
}

// NewAmong is New for one of several servers that answer for the same keys. Each has an
// equal part of a key's bounds, by how many nodes there are now, and at least one
// request at a time. Whoever asks all of them can use the whole. nodes is asked with
// every request.
func NewAmong(store cove.KeyStore, nodes func() int) *Keyring {
	k := New(store)
	k.nodes = nodes
	return k
}

// Authenticate returns the principal of the key with this secret. The caller
// calls done, once or more, when the request is over. A secret that opens
// nothing is Unauthenticated; a key that is over its rate or has too many
// requests under way is Exhausted with reason rate_limited and the seconds to
// wait in Details["retry_after"]; one that is bound to a namespace is Denied,
// since only who knows namespaces can hold it to its own. done is never nil.
func (k *Keyring) Authenticate(ctx context.Context, secret string) (cove.Principal, func(), error) {
	nothing := func() {}
	key, err := k.find(ctx, secret)
	if err != nil {
		return cove.Principal{}, nothing, err
	}
	if n := key.Limits.Namespace; n != "" && n != cove.AllNamespaces {
		return cove.Principal{}, nothing, cove.Errorf(cove.Denied, "this key reaches the namespace %s of microsandbox's clients alone", n).
			Remedy("use a key without a namespace; cove key create makes one")
	}
	return k.enter(key)
}

// AuthenticateNamespaced is Authenticate for callers that hold a key to its
// Limits.Namespace themselves.
func (k *Keyring) AuthenticateNamespaced(ctx context.Context, secret string) (cove.Principal, func(), error) {
	key, err := k.find(ctx, secret)
	if err != nil {
		return cove.Principal{}, func() {}, err
	}
	return k.enter(key)
}

// Known reports whether a secret opens anything, without counting the request: for
// one that another server will count.
func (k *Keyring) Known(ctx context.Context, secret string) error {
	_, err := k.find(ctx, secret)
	return err
}

func (k *Keyring) enter(key *cove.Key) (cove.Principal, func(), error) {
	done, err := k.admit(key)
	if err != nil {
		return cove.Principal{}, func() {}, err
	}
	return principalOf(key), done, nil
}

func (k *Keyring) find(ctx context.Context, secret string) (*cove.Key, error) {
	if secret == "" || len(secret) > maxSecretLen {
		return nil, unknown()
	}
	hash := cove.HashSecret(secret)
	key, err := k.store.KeyByHash(ctx, hash)
	if errors.Is(err, cove.NotFound) {
		return nil, unknown()
	}
	if err != nil {
		return nil, cannotLookUp(err)
	}
	if subtle.ConstantTimeCompare(key.Hash, hash) != 1 || !good(key, time.Now()) {
		return nil, unknown()
	}
	return key, nil
}

// cannotLookUp is the answer where nobody can say whether a key is good.
func cannotLookUp(err error) error {
	e := cove.Wrap(cove.CodeOf(err), err, "keys cannot be looked up now; try again")
	if was, ok := errors.AsType[*cove.Error](err); ok && was.Details["retry_after"] != nil {
		e = e.With("retry_after", was.Details["retry_after"])
	}
	return cove.WithReason(e, cove.ReasonOf(err))
}

// unknown is the one answer to every secret that opens nothing.
func unknown() error {
	return cove.Errorf(cove.Unauthenticated, "no valid key was shown").
		Remedy("send Authorization: Bearer <key>; cove key create makes one")
}
