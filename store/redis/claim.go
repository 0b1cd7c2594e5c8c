package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
)

// claimSlack is how long Redis keeps a claim that has expired: its clock and the
// callers' differ.
const claimSlack = time.Hour

// TakeClaim implements cove.ClaimStore. In a cluster, a claim of a node that is
// gone is this node's from now on.
func (s *Store) TakeClaim(ctx context.Context, c cove.Claim, now time.Time) (*cove.Claim, error) {
	if y := c.ExpiresAt.UTC().Year(); y < 0 || y > 9999 {
		return nil, cove.InvalidField("expires_at", "the year %d is out of range", y)
	}
	if s.node != "" {
		c.Node = s.node
	}
	keep := max(c.ExpiresAt.Sub(now), 0) + claimSlack
	if keep < 0 { // it does not fit
		keep = 1<<63 - 1
	}
	a, err := s.run(ctx, scripts.takeClaim, compound(c.Tenant, c.Key), c.Digest, string(c.Result), c.Node,
		c.ExpiresAt.Unix(), c.ExpiresAt.Nanosecond(), now.Unix(), now.Nanosecond(), keep.Milliseconds())
	switch {
	case err != nil:
		return nil, err
	case a.is("ok", 0):
		return nil, nil //nolint:nilnil // nobody has it: the contract
	case !a.is("held", 5):
		return nil, strange(a)
	}
	return &cove.Claim{
		Tenant: c.Tenant, Key: c.Key, Digest: a[1], Result: cove.ID(a[2]), Node: a[3],
		ExpiresAt: time.Unix(number(a[4]), number(a[5])).UTC(),
	}, nil
}

// number reads what a script wrote as one.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// SetClaim implements cove.ClaimStore. A claim that is not there is NotFound.
func (s *Store) SetClaim(ctx context.Context, tenant, key string, result cove.ID) error {
	a, err := s.run(ctx, scripts.setClaim, compound(tenant, key), string(result))
	if err == nil && !a.is("ok", 0) {
		return cove.Errorf(cove.NotFound, "the idempotency key %.80q is not claimed", key)
	}
	return err
}

// DropClaim implements cove.ClaimStore. It is idempotent.
func (s *Store) DropClaim(ctx context.Context, tenant, key string) error {
	_, err := s.run(ctx, scripts.dropClaim, compound(tenant, key))
	return err
}
