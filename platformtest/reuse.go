package platformtest

import (
	"slices"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func reuseCases() []testCase {
	return []testCase{
		{"same_key", sameKey},
		{"other_key", otherKey},
		{"no_key", noKey},
		{"fifty_at_once", fiftyAtOnce},
		{"spec_conflict", specConflict},
		{"asked_only", askedOnly},
		{"stopped", reuseStopped},
	}
}

func sameKey(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	for _, spec := range []cove.Spec{{User: "u", Thread: "t"}, {User: "only"}, {Thread: "only"}} {
		made, again := r.session(p, spec), r.session(p, spec)
		if !made.Created || again.Created || again.ID != made.ID || again.State != cove.Running {
			t.Errorf("user %q thread %q: first %s (created %t), then %s (created %t)",
				spec.User, spec.Thread, made.ID, made.Created, again.ID, again.Created)
		}
	}
}

func otherKey(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	seen := map[cove.ID]bool{}
	for _, open := range []struct{ tenant, user, thread string }{
		{"acme", "u", "t"}, {"acme", "u", "t2"}, {"acme", "u2", "t"}, {"globex", "u", "t"}, {"acme", "u", ""}, {"acme", "", "t"}, {"acme", "ut", ""},
	} {
		made := r.session(r.user(open.tenant), cove.Spec{User: open.user, Thread: open.thread})
		if !made.Created || seen[made.ID] {
			t.Errorf("%+v got the session of another key", open)
		}
		seen[made.ID] = true
	}
}

func noKey(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	one, two := r.session(p, cove.Spec{Project: "same"}), r.session(p, cove.Spec{Project: "same"})
	if one.ID == two.ID || !two.Created {
		t.Error("two sessions without user and thread are one")
	}
	r.write(p, one.ID, "mine", "x")
	_, err := p.Files(two.ID).Stat(r.ctx, "mine")
	wantCode(t, err, cove.NotFound)
}

func fiftyAtOnce(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	var answers []<-chan answer[*cove.Session]
	for range 50 {
		answers = append(answers, async(func() (*cove.Session, error) {
			return p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{User: "u", Thread: "t"}})
		}))
	}
	seen, created := map[cove.ID]bool{}, 0
	for _, ch := range answers {
		a := receive(r, ch, "an answer to Open")
		r.must(a.err, "open")
		seen[a.value.ID] = true
		if a.value.Created {
			created++
		}
	}
	if len(seen) != 1 || created != 1 {
		t.Errorf("50 callers of one key got %d sessions, of which %d were created", len(seen), created)
	}
	if n := len(all(r, p.Sessions().List(r.ctx, cove.SessionFilter{}))); n != 1 {
		t.Errorf("%d sessions are listed", n)
	}
}

func specConflict(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	base := cove.Spec{
		User: "u", Thread: "t", Project: "p", Env: map[string]string{"A": "1"}, Metadata: map[string]string{"m": "1"},
		Ports: []int{80}, Idle: time.Hour,
	}
	live := r.session(p, base)
	for _, c := range []struct {
		name string
		set  func(*cove.Spec)
		want []string
	}{
		{"project", func(s *cove.Spec) { s.Project = "q" }, []string{"project_name"}},
		{"env", func(s *cove.Spec) { s.Env = map[string]string{"A": "2"} }, []string{"env"}},
		{"flavor", func(s *cove.Spec) { s.Flavor = "large" }, []string{"flavor"}},
		{"ports and idle", func(s *cove.Spec) { s.Ports, s.Idle = []int{81}, 2*time.Hour }, []string{"idle", "ports"}},
		{"metadata", func(s *cove.Spec) { s.Metadata = map[string]string{"m": "2"} }, []string{"metadata"}},
		{"lifetime", func(s *cove.Spec) { s.Lifetime = 2 * time.Hour }, []string{"lifetime"}},
	} {
		spec := base.Clone()
		c.set(&spec)
		_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: spec})
		wantReason(t, err, cove.Conflict, cove.ReasonSpecDiffers)
		got := words(err, "fields")
		slices.Sort(got)
		same(t, c.name+": the fields that differ", got, c.want)
	}
	if again := r.session(p, base); again.ID != live.ID {
		t.Error("the same request no longer finds the session")
	}
}

func askedOnly(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	live := r.session(p, cove.Spec{
		User: "u", Thread: "t", Flavor: "medium", Env: map[string]string{"A": "1"}, Metadata: map[string]string{"m": "1"}, Idle: time.Hour,
	})
	for _, spec := range []cove.Spec{
		{},
		{Flavor: "medium"},
		{Env: map[string]string{"A": "1"}},
		{Template: live.Spec.Template, Provider: live.Provider, Idle: time.Hour},
		{Network: cove.Network{Mode: live.Spec.Network.Mode}},
		{Resources: cove.Resources{Memory: live.Spec.Resources.Memory}},
	} {
		spec.User, spec.Thread = "u", "t"
		got, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: spec})
		r.must(err, "open with what the live session has")
		if got.ID != live.ID || got.Created {
			t.Errorf("%+v made another session", spec)
		}
	}
}

func reuseStopped(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	spec := cove.Spec{User: "u", Thread: "t"}
	id := r.session(p, spec).ID
	r.write(p, id, "file", "text")
	r.stop(p, id)
	again := r.session(p, spec)
	if again.ID != id || again.Created || again.State != cove.Running {
		t.Fatalf("opening a stopped session gave %s, created %t, %s", again.ID, again.Created, again.State)
	}
	same(t, "the file of the stopped session", r.read(p, id, "file"), "text")
}
