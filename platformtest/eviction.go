package platformtest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

func evictionCases() []testCase {
	return []testCase{
		{"least_recently_used", evictLRU},
		{"comes_back", evictComesBack},
		{"code_comes_back", evictCodeComesBack},
		{"never_busy", evictNeverBusy},
		{"never_another_tenants", evictNeverOthers},
		{"as_many_as_needed", evictForMemory},
		{"nobody_in_vain", evictNobodyInVain},
		{"at_once", evictAtOnce},
		{"off", evictOff},
	}
}

func (r *rig) wantState(p cove.Platform, id cove.ID, want cove.State) {
	r.t.Helper()
	if got := r.get(p, id).State; got != want {
		r.t.Errorf("session %s is %s, want %s", id, got, want)
	}
}

func evictLRU(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 2, Evict: true})
	p := r.user("acme")
	a, b := r.session(p, cove.Spec{}).ID, r.session(p, cove.Spec{User: "b"}).ID
	r.write(p, b, "f", "kept")
	r.sh(p, a, "true")
	c := r.session(p, cove.Spec{}).ID
	r.wantState(p, a, cove.Running)
	r.wantState(p, b, cove.Stopped)
	r.wantState(p, c, cove.Running)
	again := r.session(p, cove.Spec{User: "b"})
	if again.ID != b || again.Created {
		t.Errorf("an evicted session was not found again: %s", again.ID)
	}
	same(t, "the file of an evicted session", r.read(p, b, "f"), "kept")
	r.wantState(p, a, cove.Stopped)
	r.wantState(p, c, cove.Running)
}

// evictComesBack: whoever uses an evicted session has it back, also by a key that can start
// no session.
func evictComesBack(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1, Evict: true})
	p := r.user("acme")
	a := r.session(p, cove.Spec{}).ID
	r.write(p, a, "f", "kept")
	b := r.session(p, cove.Spec{}).ID
	if got := r.get(p, a); got.State != cove.Stopped || got.Cause != cove.ReasonEvicted {
		t.Fatalf("the evicted session is %s for %q", got.State, got.Cause)
	}
	r.comesBack(r.as(cove.Principal{Name: "model", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeExec}}), a)
	r.wantState(p, b, cove.Stopped)
	r.write(p, b, "f", "kept")
	r.comesBack(p, b)
}

// evictCodeComesBack: so does code, which is told that its variables are gone.
func evictCodeComesBack(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1, Evict: true})
	lang := r.h.Extras().Code
	if lang == nil {
		t.Skip("this platform runs no code")
	}
	p := r.user("acme")
	a := r.session(p, cove.Spec{}).ID
	for i, again := range []bool{false, true} {
		out, err := p.Contexts(a).Run(r.ctx, cove.CodeRequest{Language: lang.Name, Code: lang.Assign})
		r.must(err, "run code")
		if !out.Fresh || out.Restarted != again {
			t.Errorf("run %d: fresh %v, restarted %v", i, out.Fresh, out.Restarted)
		}
		r.session(p, cove.Spec{})
	}
	// A context that was opened by name is there, without what it remembered.
	named, err := p.Contexts(a).Open(r.ctx, cove.ContextSpec{Language: lang.Name})
	r.must(err, "open a context")
	r.session(p, cove.Spec{})
	out, err := p.Contexts(a).Run(r.ctx, cove.CodeRequest{Context: named.Name, Code: lang.Assign})
	r.must(err, "run code in a context of an evicted session")
	if out.Context != named.Name || !out.Fresh || !out.Restarted {
		t.Errorf("in context %q: fresh %v, restarted %v", out.Context, out.Fresh, out.Restarted)
	}
}

func evictNeverBusy(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 2, Evict: true})
	p := r.user("acme")
	a, b := r.session(p, cove.Spec{}).ID, r.session(p, cove.Spec{}).ID
	pid := r.idle(p, a)
	r.idle(p, b)
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{})
	wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
	r.wantState(p, a, cove.Running)
	r.wantState(p, b, cove.Running)
	r.must(p.Processes(a).Input(r.ctx, pid, nil, true), "end the input")
	r.wait(p, a, pid)
	r.eventually("the session is idle", func() bool { return !r.get(p, a).Busy })
	r.session(p, cove.Spec{})
	r.wantState(p, a, cove.Stopped)
	r.wantState(p, b, cove.Running)
}

func evictNeverOthers(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1, Evict: true})
	p := r.user("acme")
	a := r.session(p, cove.Spec{}).ID
	_, err := r.user("globex").Sessions().Open(r.ctx, cove.OpenRequest{})
	wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
	r.wantState(p, a, cove.Running)
}

func evictForMemory(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxMemory: 400 * cove.MiB, Evict: true, Flavors: threeFlavors()})
	p := r.user("acme")
	a, b := r.session(p, cove.Spec{}).ID, r.session(p, cove.Spec{}).ID
	c := r.session(p, cove.Spec{Flavor: "large"}).ID
	r.wantState(p, a, cove.Stopped)
	r.wantState(p, b, cove.Stopped)
	r.wantState(p, c, cove.Running)
}

// evictNobodyInVain: a request that cannot be met stops nobody.
func evictNobodyInVain(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxMemory: 450 * cove.MiB, Evict: true, Flavors: threeFlavors()})
	p := r.user("acme")
	r.session(r.user("globex"), cove.Spec{})
	a := r.session(p, cove.Spec{}).ID
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Flavor: "large"}})
	wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
	r.wantState(p, a, cove.Running)
}

// evictAtOnce: many who push each other out lose nothing and never go over the
// bound.
func evictAtOnce(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 3, Evict: true})
	p := r.user("acme")
	var answers []<-chan answer[*cove.Session]
	for range 12 {
		answers = append(answers, async(func() (*cove.Session, error) { return p.Sessions().Open(r.ctx, cove.OpenRequest{}) }))
	}
	opened := 0
	for _, ch := range answers {
		if a := receive(r, ch, "an answer to Open"); a.err == nil {
			opened++
		} else {
			wantReason(t, a.err, cove.Exhausted, cove.ReasonCapacity)
		}
	}
	got := r.stats(r.admin())
	if got.ActiveSessions > 3 || got.SessionsByState[cove.Running]+got.SessionsByState[cove.Stopped] != opened {
		t.Errorf("%d were opened with room for 3: %d are active, by state %v", opened, got.ActiveSessions, got.SessionsByState)
	}
}

func evictOff(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	p := r.user("acme")
	a := r.session(p, cove.Spec{}).ID
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{})
	wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
	r.wantState(p, a, cove.Running)
}
