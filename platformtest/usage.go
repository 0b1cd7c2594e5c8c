package platformtest

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func usageCases() []testCase {
	return []testCase{
		{"counted", usageCounted},
		{"cost", usageCost},
		{"own", usageOwn},
		{"restart", usageRestart},
	}
}

// report is what the operator sees of a tenant.
func (r *rig) report(tenant string) *cove.TenantReport {
	r.t.Helper()
	got, err := r.admin().Admin().Tenant(r.ctx, tenant)
	r.must(err, "get a tenant")
	return got
}

func usageCounted(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	if used := r.report("acme").Used; used != (cove.Consumption{}) {
		t.Errorf("a tenant that did nothing used %+v", used)
	}
	id := r.session(p, cove.Spec{}).ID
	r.exec(p, id, cove.ExecRequest{Line: "true"})
	r.wait(p, id, r.background(p, id, cove.ExecRequest{Line: "true"}))
	text := strings.Repeat("x", 100_000)
	r.write(p, id, "f", text)
	used := r.report("acme").Used
	if used.Executions != 2 || used.Up != 100_000 || used.Down != 0 || used.Held <= 0 || used.MemoryTime <= 0 {
		t.Errorf("two programs and a file of 100,000 bytes used %+v", used)
	}
	same(t, "the file", r.read(p, id, "f"), text)
	if got := r.report("acme").Used.Down; got != 100_000 {
		t.Errorf("reading 100,000 bytes counts as %d", got)
	}
	r.closeNow(p, id)
	last := r.report("acme").Used
	if last.Held < used.Held || last.MemoryTime < used.MemoryTime {
		t.Errorf("%+v became %+v", used, last)
	}
	same(t, "what is used without a sandbox", r.report("acme").Used, last)
	if other := r.report("globex").Used; other != (cove.Consumption{}) {
		t.Errorf("another tenant used %+v", other)
	}
}

func usageCost(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	if cost := r.report("acme").Cost; cost != nil {
		t.Errorf("without prices there is an estimate of %+v", cost)
	}
	r = s.start(t, Options{Prices: cove.Prices{Currency: "EUR", Execution: 0.25, UpGB: 1024}})
	if cost := r.report("acme").Cost; cost == nil || *cost != (cove.Cost{Currency: "EUR"}) {
		t.Errorf("nothing costs %+v", cost)
	}
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for range 3 {
		r.exec(p, id, cove.ExecRequest{Line: "true"})
	}
	r.write(p, id, "f", strings.Repeat("x", 1<<20))
	if cost := r.report("acme").Cost; cost == nil || *cost != (cove.Cost{Currency: "EUR", Amount: 1.75}) {
		t.Errorf("three programs and a megabyte cost %+v", cost)
	}
}

// usageOwn: a caller sees the report and the journal of its own tenant, and of
// no other.
func usageOwn(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.session(r.user("acme"), cove.Spec{})
	r.session(r.user("globex"), cove.Spec{})
	reader := r.as(cove.Principal{Name: "reader", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRead}}).Admin()
	got, err := reader.Tenant(r.ctx, "acme")
	r.must(err, "get one's own tenant")
	if got.Name != "acme" || got.Sessions != 1 {
		t.Errorf("its own tenant is shown as %+v", got)
	}
	_, err = reader.Tenant(r.ctx, "globex")
	wantCode(t, err, cove.Denied)
	wantCode(t, reader.SetTenant(r.ctx, cove.Tenant{Name: "acme"}), cove.Denied)
	for _, f := range []cove.EventFilter{{}, {Tenant: "acme"}} {
		lines := all(r, reader.Events(r.ctx, f))
		if len(lines) == 0 {
			t.Errorf("%+v shows nothing", f)
		}
		for _, e := range lines {
			if e.Tenant != "acme" {
				t.Errorf("%+v shows a line of tenant %q", f, e.Tenant)
			}
		}
	}
	wantCode(t, first(reader.Events(r.ctx, cove.EventFilter{Tenant: "globex"})), cove.Denied)
	blind := r.as(cove.Principal{Name: "blind", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeExec}}).Admin()
	_, err = blind.Tenant(r.ctx, "acme")
	wantCode(t, err, cove.Denied)
	wantCode(t, first(blind.Events(r.ctx, cove.EventFilter{})), cove.Denied)
}

func usageRestart(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.exec(p, id, cove.ExecRequest{Line: "true"})
	r.write(p, id, "f", "12345")
	r.read(p, id, "f")
	_, err := r.admin().Admin().ControlTask(r.ctx, "records", cove.RunTask)
	r.must(err, "write down what was used")
	before := r.report("acme").Used
	r.restart()
	after := r.report("acme").Used
	if after.Executions != 1 || after.Up != 5 || after.Down != 5 || after.CPU != before.CPU || after.Held <= 0 || after.MemoryTime <= 0 {
		t.Errorf("before the restart %+v was used, after it %+v", before, after)
	}
	r.exec(r.user("acme"), r.session(r.user("acme"), cove.Spec{}).ID, cove.ExecRequest{Line: "true"})
	if got := r.report("acme").Used.Executions; got != 2 {
		t.Errorf("a program before and one after the restart are %d", got)
	}
}
