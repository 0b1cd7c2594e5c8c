package platformtest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

func quotaCases() []testCase {
	return []testCase{
		{"sessions", quotaSessions},
		{"memory", quotaMemory},
		{"waiting", quotaWaiting},
		{"lifted", quotaLifted},
		{"of_a_key", quotaOfKey},
	}
}

// setQuota bounds the tenant acme.
func (r *rig) setQuota(quota cove.Bounds) {
	r.t.Helper()
	r.must(r.admin().Admin().SetTenant(r.ctx, cove.Tenant{Name: "acme", Quota: quota}), "set a tenant")
}

func quotaSessions(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.setQuota(cove.Bounds{Sessions: 2})
	p := r.user("acme")
	one := r.session(p, cove.Spec{})
	r.session(p, cove.Spec{})
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{})
	wantReason(t, err, cove.Exhausted, cove.ReasonTenantQuota)
	r.session(r.user("globex"), cove.Spec{})
	r.closeNow(p, one.ID)
	r.session(p, cove.Spec{})
}

func quotaMemory(t *testing.T, s *suite) {
	r := s.start(t, Options{Flavors: threeFlavors()})
	r.setQuota(cove.Bounds{Memory: 150 * cove.MiB})
	p := r.user("acme")
	r.session(p, cove.Spec{})
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{})
	wantReason(t, err, cove.Exhausted, cove.ReasonTenantQuota)
	r.session(p, cove.Spec{Flavor: "tiny"})
}

// quotaWaiting: a caller that waits for its own tenant's quota holds up nobody
// else.
func quotaWaiting(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 3})
	r.setQuota(cove.Bounds{Sessions: 1})
	p := r.user("acme")
	held := r.session(p, cove.Spec{})
	w := r.enqueue(r.ctx, p, cove.Spec{})
	r.session(r.user("globex"), cove.Spec{})
	r.closeNow(p, held.ID)
	r.admitted(w)
}

func quotaLifted(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.setQuota(cove.Bounds{Sessions: 1})
	p := r.user("acme")
	r.session(p, cove.Spec{})
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{})
	wantReason(t, err, cove.Exhausted, cove.ReasonTenantQuota)
	r.setQuota(cove.Bounds{})
	r.session(p, cove.Spec{})
}

func quotaOfKey(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.as(cove.Principal{Name: "bounded", Tenant: "acme", Scopes: without(cove.ScopeAdmin), Limits: cove.KeyLimit{Sessions: 1}})
	one := r.session(p, cove.Spec{User: "u"})
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{})
	wantCode(t, err, cove.Exhausted)
	if again := r.session(p, cove.Spec{User: "u"}); again.ID != one.ID {
		t.Error("a key at its bound does not find its session")
	}
	r.session(r.user("acme"), cove.Spec{})
	r.closeNow(p, one.ID)
	r.session(p, cove.Spec{})
}
