package auth

import (
	"context"
	"errors"
	"time"

	"github.com/cove-sandbox/cove"
)

// ByID returns the principal of the key with this id, as [Keyring.Authenticate]
// does for who shows its secret: for a link that the key's holder made. A key
// that is not there, was revoked or has expired is Unauthenticated.
func (k *Keyring) ByID(ctx context.Context, id cove.ID) (cove.Principal, func(), error) {
	nothing := func() {}
	key, err := k.store.KeyByID(ctx, id)
	switch {
	case errors.Is(err, cove.NotFound), err == nil && !good(key, time.Now()):
		return cove.Principal{}, nothing, unknown()
	case err != nil:
		return cove.Principal{}, nothing, cove.Wrap(cove.CodeOf(err), err, "keys cannot be looked up now; try again")
	}
	done, err := k.admit(key)
	if err != nil {
		return cove.Principal{}, nothing, err
	}
	return principalOf(key), done, nil
}

// good reports whether a key opens anything at now.
func good(key *cove.Key, now time.Time) bool {
	return key.RevokedAt.IsZero() && (key.ExpiresAt.IsZero() || now.Before(key.ExpiresAt))
}

func principalOf(key *cove.Key) cove.Principal {
	return cove.Principal{Name: string(key.ID), Label: key.Name, Tenant: key.Tenant, Scopes: key.Scopes, Limits: key.Limits, Defaults: key.Defaults, ExpiresAt: key.ExpiresAt}
}
