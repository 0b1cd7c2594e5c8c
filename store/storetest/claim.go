package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

var claimCases = []testCase{
	{"Take", claimTake},
	{"Expiry", claimExpiry},
	{"Drop", claimDrop},
	{"Apart", claimApart},
	{"Many", claimMany},
	{"Node", claimNode},
}

func claim(tenant, key string) cove.Claim {
	return cove.Claim{Tenant: tenant, Key: key, Digest: "d1", ExpiresAt: epoch.Add(time.Hour)}
}

// taken wants c to be in.
func taken(t *testing.T, s cove.Store, c cove.Claim, now time.Time) {
	t.Helper()
	old, err := s.TakeClaim(t.Context(), c, now)
	ok(t, err)
	same(t, old, (*cove.Claim)(nil))
}

// heldBy wants c to be refused in favor of another.
func heldBy(t *testing.T, s cove.Store, c cove.Claim, now time.Time, want cove.Claim) {
	t.Helper()
	old, err := s.TakeClaim(t.Context(), c, now)
	ok(t, err)
	same(t, old, &want)
}

func claimTake(t *testing.T, s cove.Store) {
	c := claim("acme", "k")
	taken(t, s, c, epoch)
	second := c
	second.Digest, second.ExpiresAt = "d2", epoch.Add(2*time.Hour)
	heldBy(t, s, second, epoch, c)
	ok(t, s.SetClaim(t.Context(), "acme", "k", "made"))
	c.Result = "made"
	old, err := s.TakeClaim(t.Context(), second, epoch)
	ok(t, err)
	same(t, old, &c)
	old.Result = "spoiled"
	heldBy(t, s, second, epoch, c)
	ok(t, s.SetClaim(t.Context(), "acme", "k", ""))
	c.Result = ""
	heldBy(t, s, second, epoch, c)

	filled := claim("acme", "k2")
	filled.Result = "there already"
	taken(t, s, filled, epoch)
	heldBy(t, s, otherThan(filled), epoch, filled)
}

func otherThan(c cove.Claim) cove.Claim {
	c.Digest, c.Result = "other", ""
	return c
}

func claimExpiry(t *testing.T, s cove.Store) {
	c := claim("acme", "k")
	taken(t, s, c, epoch)
	heldBy(t, s, c, c.ExpiresAt.Add(-time.Nanosecond), c)
	heldBy(t, s, c, c.ExpiresAt.Add(-time.Nanosecond).UTC(), c)
	next := c
	next.Digest, next.ExpiresAt = "d2", c.ExpiresAt.Add(time.Hour)
	taken(t, s, next, c.ExpiresAt)
	heldBy(t, s, c, c.ExpiresAt, next)
	bad := claim("acme", "k3")
	bad.ExpiresAt = epoch.AddDate(10000, 0, 0)
	_, err := s.TakeClaim(t.Context(), bad, epoch)
	fails(t, err, cove.Invalid)
	taken(t, s, cove.Claim{Tenant: "acme", Key: "k4"}, epoch) // expired from the start
	taken(t, s, claim("acme", "k4"), epoch)
}

func claimDrop(t *testing.T, s cove.Store) {
	c := claim("acme", "k")
	fails(t, s.SetClaim(t.Context(), "acme", "k", "x"), cove.NotFound)
	taken(t, s, c, epoch)
	for range 2 {
		ok(t, s.DropClaim(t.Context(), "acme", "k"))
	}
	fails(t, s.SetClaim(t.Context(), "acme", "k", "x"), cove.NotFound)
	taken(t, s, c, epoch)
}

func claimApart(t *testing.T, s cove.Store) {
	for _, c := range []cove.Claim{
		claim("acme", "k"), claim("globex", "k"), claim("acme", "K"), claim("acm", "ek"), claim("", "acmek"),
		claim("acmek", ""), claim("acme", "k "), claim("acme", "k\xff"), claim("acme", "k\xfe"), claim("acme", "k\ufffd"),
	} {
		taken(t, s, c, epoch)
		heldBy(t, s, c, epoch, c)
	}
	ok(t, s.DropClaim(t.Context(), "globex", "k"))
	heldBy(t, s, claim("acme", "k"), epoch, claim("acme", "k"))
}

// claimMany lets many expire while new ones come: none that is valid is lost.
func claimMany(t *testing.T, s cove.Store) {
	const n = 200
	for i := range n {
		c := claim("acme", fmt.Sprint(i))
		c.ExpiresAt = epoch.Add(time.Duration(i) * time.Second)
		taken(t, s, c, epoch.Add(time.Duration(i-n/2)*time.Second))
	}
	now := epoch.Add((n/2 - 1) * time.Second)
	for i := n / 2; i < n; i++ {
		c := claim("acme", fmt.Sprint(i))
		c.ExpiresAt = epoch.Add(time.Duration(i) * time.Second)
		heldBy(t, s, c, now, c)
	}
	for i := range n / 2 {
		taken(t, s, claim("acme", fmt.Sprint(i)), now)
	}
}

// claimNode keeps who works on a claim, whatever else is done to it.
func claimNode(t *testing.T, s cove.Store) {
	c := claim("acme", "k")
	c.Node = "n1"
	taken(t, s, c, epoch)
	heldBy(t, s, otherThan(claim("acme", "k")), epoch, c)
	ok(t, s.SetClaim(t.Context(), "acme", "k", "made"))
	c.Result = "made"
	heldBy(t, s, otherThan(c), epoch, c)
	next := c
	next.Node, next.Result, next.ExpiresAt = "n2", "", c.ExpiresAt.Add(time.Hour)
	taken(t, s, next, c.ExpiresAt)
	heldBy(t, s, c, c.ExpiresAt, next)
}
