package platformtest

import (
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func expiryCases() []testCase {
	return []testCase{
		{"idle_and_lifetime", expires},
		{"task_frees", expiryTaskFrees},
	}
}

// shortest is a little over the shortest timeout that a spec may have, and a
// round part of a minute.
const shortest = 1200 * time.Millisecond

// pass waits until a deadline of the platform lies behind.
func (r *rig) pass(at time.Time) {
	r.t.Helper()
	receive(r, time.After(time.Until(at)+20*time.Millisecond), "the deadline")
}

func expires(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(false)})
	p := r.user("acme")
	spec := cove.Spec{User: "u", Thread: "t", Idle: shortest, OnEnd: cove.EndClose}
	idle := r.session(p, spec)
	old := r.session(p, cove.Spec{Lifetime: shortest})
	_, err := p.Sessions().Renew(r.ctx, old.ID, time.Hour)
	r.must(err, "renew")
	r.pass(idle.ExpiresAt)
	r.pass(old.CreatedAt.Add(shortest))
	for _, gone := range []*cove.Session{idle, old} {
		_, err := p.Processes(gone.ID).Exec(r.ctx, cove.ExecRequest{Line: "true"})
		wantReason(t, err, cove.NotFound, cove.ReasonSessionExpired)
		_, err = p.Sessions().Get(r.ctx, gone.ID)
		wantReason(t, err, cove.NotFound, cove.ReasonSessionExpired)
	}
	if list := all(r, p.Sessions().List(r.ctx, cove.SessionFilter{})); len(list) > 0 {
		t.Errorf("expired sessions are listed: %v", ids(list))
	}
	if again := r.session(p, spec); !again.Created || again.ID == idle.ID {
		t.Error("opening the key of an expired session gave the old one")
	}
}

func expiryTaskFrees(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	p := r.user("acme")
	old := r.session(p, cove.Spec{Idle: shortest, OnEnd: cove.EndClose})
	r.pass(old.ExpiresAt)
	_, err := r.admin().Admin().ControlTask(r.ctx, "expiry", cove.RunTask)
	r.must(err, "run the expiry task")
	_, err = p.Sessions().Get(r.ctx, old.ID)
	wantReason(t, err, cove.NotFound, cove.ReasonSessionExpired)
	r.session(p, cove.Spec{})
	notes := all(r, r.admin().Admin().Events(r.ctx, cove.EventFilter{Kind: "session.expired", Session: old.ID}))
	if len(notes) != 1 || notes[0].Phase != cove.EngineNote {
		t.Errorf("the journal tells the end of an expired session as %+v", notes)
	}
}
