package storetest

import (
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

var tenantCases = []testCase{
	{"RoundTrip", tenantRoundTrip},
	{"Usage", tenantUsage},
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

func tenantUsage(t *testing.T, s cove.Store) {
	add := func(tenant string, by, want cove.Consumption) {
		t.Helper()
		got, err := s.AddUsage(t.Context(), tenant, by)
		ok(t, err)
		same(t, got, want)
	}
	cpu := func(d time.Duration) cove.Consumption { return cove.Consumption{CPU: d} }
	add("acme", cpu(0), cpu(0))
	add("acme", cpu(time.Nanosecond), cpu(time.Nanosecond))
	add("acme", cpu(1000*time.Hour), cpu(1000*time.Hour+1))
	add("globex", cpu(time.Second), cpu(time.Second))
	_, err := s.GetTenant(t.Context(), "acme") // what is used makes no record
	fails(t, err, cove.NotFound)
	ok(t, s.PutTenant(t.Context(), fullTenant("acme")))
	add("acme", cpu(0), cpu(1000*time.Hour+1))
	add("acme", cpu(-time.Hour), cpu(999*time.Hour+1))
	add("acme", fullUsage(), fullUsage().Plus(cpu(999*time.Hour+1)))
	add("acme", fullUsage(), fullUsage().Plus(fullUsage()).Plus(cpu(999*time.Hour+1)))
	add("globex", cpu(0), cpu(time.Second))
	big := cove.Consumption{Held: 1 << 62, MemoryTime: 1e18, Executions: 1 << 62, Up: 1 << 62, Down: 1 << 62}
	add("initech", big, big)
}
