package platformtest

import (
	"errors"
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
		{"cpu_seconds", quotaCPU},
		{"disk", quotaDisk},
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

// quotaCPU: a tenant that has used its CPU time begins nothing any more, and goes
// on when it gets more.
func quotaCPU(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	spin := cove.ExecRequest{Line: "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done"}
	r.exec(p, id, spin)
	used, err := r.admin().Admin().Tenant(r.ctx, "acme")
	r.must(err, "get a tenant")
	if used.Used.CPU <= 0 {
		t.Fatalf("a program that worked used %s", used.Used.CPU)
	}
	r.setQuota(cove.Bounds{CPUSeconds: used.Used.CPU.Seconds()})
	begins := map[string]func() error{
		"exec":  func() error { return failure(p.Processes(id).Exec(r.ctx, spin)) },
		"start": func() error { return failure(p.Processes(id).Start(r.ctx, spin)) },
		"open":  func() error { return failure(p.Sessions().Open(r.ctx, cove.OpenRequest{})) },
	}
	extras := r.h.Extras()
	if extras.Code != nil {
		begins["code"] = func() error {
			return failure(p.Contexts(id).Run(r.ctx, cove.CodeRequest{Language: extras.Code.Name, Code: extras.Code.Assign}))
		}
	}
	if extras.Query != nil {
		begins["run"] = func() error { return failure(p.Runs().Submit(r.ctx, extras.Query.Good)) }
	}
	for name, begin := range begins {
		t.Log(name)
		wantReason(t, begin(), cove.Exhausted, cove.ReasonTenantQuota)
	}
	r.exec(r.user("globex"), r.session(r.user("globex"), cove.Spec{}).ID, spin)
	r.write(p, id, "f", "what is there can still be taken away")
	r.setQuota(cove.Bounds{CPUSeconds: 1e6})
	for name, begin := range begins {
		r.must(begin(), name+" with a larger quota")
	}
}

// quotaDisk: a tenant that keeps as much as it may begins nothing any more, is told
// what it keeps, and goes on when it has removed some of it.
func quotaDisk(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	const bound = 256 * cove.KiB
	r.setQuota(cove.Bounds{Disk: bound})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	long := cove.ExecRequest{Line: "seq 1 60000"}
	all := []cove.ID{id}
	var full error
	for full == nil && len(all) < 10 {
		var s *cove.Session
		if s, full = p.Sessions().Open(r.ctx, cove.OpenRequest{}); full == nil {
			all = append(all, s.ID)
			_, full = p.Sessions().Stop(r.ctx, s.ID)
		}
	}
	used := func() *cove.TenantReport {
		t.Helper()
		report, err := r.admin().Admin().Tenant(r.ctx, "acme")
		r.must(err, "get a tenant")
		return report
	}
	report := used()
	if report.MaxDisk != bound || report.Quota.Disk != bound || report.Disk.Archives < bound/2 {
		t.Errorf("the report is %+v", report)
	}
	for name, begin := range map[string]func() error{
		"archive": func() error { return full },
		"exec":    func() error { return failure(p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true"})) },
		"open":    func() error { return failure(p.Sessions().Open(r.ctx, cove.OpenRequest{})) },
		"stop":    func() error { return failure(p.Sessions().Stop(r.ctx, id)) },
	} {
		t.Log(name)
		err := begin()
		wantReason(t, err, cove.Exhausted, cove.ReasonTenantDisk)
		if e, ok := errors.AsType[*cove.Error](err); !ok || e.Details["held"] == nil || e.Details["bound"] == nil || cove.RemedyOf(err) == "" {
			t.Errorf("the error has no details: %v", err)
		}
	}
	other := r.user("globex")
	r.exec(other, r.session(other, cove.Spec{}).ID, long)
	for _, one := range all {
		r.closeNow(p, one)
	}
	if left := used().Disk; left != (cove.DiskUse{}) {
		t.Errorf("after all was removed it keeps %+v", left)
	}
	r.exec(p, r.session(p, cove.Spec{}).ID, long)
}
