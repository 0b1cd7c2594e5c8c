package memory

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

type claimKey struct{ tenant, key string }

// purgeClaims is how many claims are looked at for each that is taken, so that
// those that expired do not pile up.
const purgeClaims = 8

// TakeClaim implements cove.ClaimStore. Claims that expired are forgotten by
// and by.
func (s *Store) TakeClaim(ctx context.Context, c cove.Claim, now time.Time) (held *cove.Claim, err error) {
	if y := c.ExpiresAt.UTC().Year(); y < 0 || y > 9999 {
		return nil, cove.InvalidField("expires_at", "the year %d is out of range", y)
	}
	err = s.change(ctx, func() error {
		key := claimKey{c.Tenant, c.Key}
		if old, ok := s.claims[key]; ok && now.Before(old.ExpiresAt) {
			held = &old
			return nil
		}
		s.purge(now)
		s.claims[key] = c
		return nil
	})
	return held, err
}

// purge drops some of the claims that expired; s.mu is held.
func (s *Store) purge(now time.Time) {
	seen := 0
	for key, c := range s.claims { // starts anywhere, so that all get their turn
		if !now.Before(c.ExpiresAt) {
			delete(s.claims, key)
		}
		if seen++; seen == purgeClaims {
			return
		}
	}
}

// SetClaim implements cove.ClaimStore. A claim that is not there is NotFound.
func (s *Store) SetClaim(ctx context.Context, tenant, key string, result cove.ID) error {
	return s.change(ctx, func() error {
		c, ok := s.claims[claimKey{tenant, key}]
		if !ok {
			return cove.Errorf(cove.NotFound, "the idempotency key %.80q is not claimed", key)
		}
		c.Result = result
		s.claims[claimKey{tenant, key}] = c
		return nil
	})
}

// DropClaim implements cove.ClaimStore. It is idempotent.
func (s *Store) DropClaim(ctx context.Context, tenant, key string) error {
	return s.change(ctx, func() error {
		delete(s.claims, claimKey{tenant, key})
		return nil
	})
}
