package storetest

import (
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

var tenantCases = []testCase{
	{"RoundTrip", tenantRoundTrip},
	{"CPU", tenantCPU},
}

func tenantRoundTrip(t *testing.T, s cove.Store) {
	want := fullTenant("acme")
	ok(t, s.PutTenant(t.Context(), want))
	got, err := s.GetTenant(t.Context(), "acme")
	ok(t, err)
	same(t, got, want)
	got.Quota.Sessions = 1
	again, err := s.GetTenant(t.Context(), "acme")
	ok(t, err)
	same(t, again, want)
	want.Quota = cove.Bounds{}
	ok(t, s.PutTenant(t.Context(), want))
	got, err = s.GetTenant(t.Context(), "acme")
	ok(t, err)
	same(t, got, want)

	for _, name := range []string{"", "Acme", "acm", "nobody"} {
		_, err = s.GetTenant(t.Context(), name)
		fails(t, err, cove.NotFound)
	}
	fails(t, s.PutTenant(t.Context(), fullTenant("")), cove.Invalid)
	bad := fullTenant("acme")
	bad.UpdatedAt = epoch.AddDate(10000, 0, 0)
	fails(t, s.PutTenant(t.Context(), bad), cove.Invalid)
}

func tenantCPU(t *testing.T, s cove.Store) {
	add := func(tenant string, d, want time.Duration) {
		t.Helper()
		got, err := s.AddCPU(t.Context(), tenant, d)
		ok(t, err)
		same(t, got, want)
	}
	add("acme", 0, 0)
	add("acme", time.Nanosecond, time.Nanosecond)
	add("acme", 1000*time.Hour, 1000*time.Hour+1)
	add("globex", time.Second, time.Second)
	_, err := s.GetTenant(t.Context(), "acme") // time used makes no record
	fails(t, err, cove.NotFound)
	ok(t, s.PutTenant(t.Context(), fullTenant("acme")))
	add("acme", 0, 1000*time.Hour+1)
	add("acme", -time.Hour, 999*time.Hour+1)
}
