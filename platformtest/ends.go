package platformtest

import (
	"slices"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func endCases() []testCase {
	return []testCase{
		{"idle_keeps", idleKeeps},
		{"fixed", fixedEnd},
		{"stop", stopAtEnd},
		{"pause", pauseAtEnd},
		{"pause_or_refuse", pauseOrRefuse},
		{"wake_stopped", wakeStopped},
		{"wake_paused", wakePaused},
		{"wake_if_allowed", wakeIfAllowed},
	}
}

// reachEnd lets the time of a session be up and what follows from it happen.
func (r *rig) reachEnd(p cove.Platform, id cove.ID) {
	r.t.Helper()
	r.expireNow(p, id)
	r.control("expiry", cove.RunTask)
}

// idleKeeps: a session whose caller said nothing of its end is stopped when nothing
// happens in it, and comes back with its files when it is used.
func idleKeeps(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	made := r.session(p, cove.Spec{Idle: time.Hour})
	if made.Spec.OnEnd != cove.EndStop {
		t.Errorf("its end is %q", made.Spec.OnEnd)
	}
	r.write(p, made.ID, "f", "kept")
	r.reachEnd(p, made.ID)
	if got := r.get(p, made.ID); got.State != cove.Stopped || got.Cause != cove.ReasonSessionExpired || got.ExpiresAt.Before(time.Now().Add(48*time.Hour)) {
		t.Fatalf("after its time the session is %s for %q until %s", got.State, got.Cause, got.ExpiresAt)
	}
	r.comesBack(p, made.ID)
}

// comesBack checks that a program brings a session back that the server stopped, which
// the answer says once, and that its file f is kept.
func (r *rig) comesBack(p cove.Platform, id cove.ID) {
	r.t.Helper()
	x := r.exec(p, id, cove.ExecRequest{Line: "cat f"})
	same(r.t, "a file of a session that came back", string(x.Stdout.Data), "kept")
	if !x.Restarted || x.Recreated || x.Session != id {
		r.t.Errorf("the first answer is of %s, restarted %v, recreated %v; the session is %s", x.Session, x.Restarted, x.Recreated, id)
	}
	if x := r.exec(p, id, cove.ExecRequest{Line: "true"}); x.Restarted {
		r.t.Error("the second answer says it again")
	}
}

func fixedEnd(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(false)})
	p := r.user("acme")
	made := r.session(p, cove.Spec{FixedEnd: true, Idle: time.Hour, OnEnd: cove.EndClose})
	r.sh(p, made.ID, "true")
	if got := r.get(p, made.ID); !got.ExpiresAt.Equal(made.ExpiresAt) || !got.Spec.FixedEnd {
		t.Errorf("the end was %s and is %s after use; fixed: %v", made.ExpiresAt, got.ExpiresAt, got.Spec.FixedEnd)
	}
	sooner, err := p.Sessions().Renew(r.ctx, made.ID, time.Minute)
	r.must(err, "renew for less")
	later, err := p.Sessions().Renew(r.ctx, made.ID, 48*time.Hour)
	r.must(err, "renew for more")
	if !sooner.ExpiresAt.Before(made.ExpiresAt) || later.ExpiresAt.Before(made.ExpiresAt.Add(46*time.Hour)) {
		t.Errorf("the end was %s, then %s for a minute and %s for two days", made.ExpiresAt, sooner.ExpiresAt, later.ExpiresAt)
	}
	r.idle(p, made.ID) // what runs does not hold it up
	r.reachEnd(p, made.ID)
	_, err = p.Sessions().Get(r.ctx, made.ID)
	wantReason(t, err, cove.NotFound, cove.ReasonSessionExpired)
}

func stopAtEnd(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(false)})
	p := r.user("acme")
	id := r.session(p, cove.Spec{FixedEnd: true, OnEnd: cove.EndStop, Idle: time.Hour}).ID
	r.write(p, id, "f", "kept")
	r.idle(p, id)
	r.reachEnd(p, id)
	got := r.get(p, id)
	if got.State != cove.Stopped || got.Busy || got.ExpiresAt.Before(time.Now().Add(48*time.Hour)) {
		t.Fatalf("after its time the session is %s until %s, busy: %v", got.State, got.ExpiresAt, got.Busy)
	}
	if notes := r.events(cove.EventFilter{Kind: "session.stopped", Session: id}); len(notes) != 1 || notes[0].Phase != cove.EngineNote {
		t.Errorf("the journal tells it as %+v", notes)
	}
	_, err := p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.Conflict, cove.ReasonSessionStopped)
	kept, err := p.Sessions().Renew(r.ctx, id, time.Minute)
	r.must(err, "renew a stopped session")
	if kept.ExpiresAt.Before(got.ExpiresAt) {
		t.Errorf("renewing moved the end of a session that is kept from %s to %s", got.ExpiresAt, kept.ExpiresAt)
	}
	back, err := p.Sessions().Start(r.ctx, id)
	r.must(err, "start")
	if back.State != cove.Running || back.ExpiresAt.After(time.Now().Add(time.Hour)) {
		t.Errorf("the session is back, %s until %s", back.State, back.ExpiresAt)
	}
	same(t, "a file of a session that was stopped at its end", r.read(p, id, "f"), "kept")
}

func pauseAtEnd(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(false)})
	r.needs(cove.PowerPause)
	p := r.user("acme")
	id := r.session(p, cove.Spec{FixedEnd: true, OnEnd: cove.EndPause, Idle: time.Hour}).ID
	pid := r.idle(p, id)
	r.reachEnd(p, id)
	if got := r.get(p, id); got.State != cove.Paused || got.ExpiresAt.Before(time.Now().Add(48*time.Hour)) {
		t.Fatalf("after its time the session is %s until %s", got.State, got.ExpiresAt)
	}
	if notes := r.events(cove.EventFilter{Kind: "session.paused", Session: id}); len(notes) != 1 || notes[0].Phase != cove.EngineNote {
		t.Errorf("the journal tells it as %+v", notes)
	}
	_, err := p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.Conflict, cove.ReasonSessionPaused)
	back, err := p.Snapshots().Resume(r.ctx, id)
	r.must(err, "resume")
	if back.State != cove.Running || back.ExpiresAt.After(time.Now().Add(time.Hour)) {
		t.Errorf("the session is back, %s until %s", back.State, back.ExpiresAt)
	}
	r.must(p.Processes(id).Input(r.ctx, pid, []byte("on"), true), "input")
	same(t, "a program that was paused", string(r.wait(p, id, pid).Stdout.Data), "on")
}

// pauseOrRefuse: whether memory can be kept is said when the session is opened.
func pauseOrRefuse(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{OnEnd: cove.EndPause}})
	if slices.Contains(r.capabilities().Powers, cove.PowerPause) {
		r.must(err, "open")
		return
	}
	wantField(t, err, cove.Unsupported, "on_end")
}

func wakeStopped(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(false)})
	p := r.user("acme")
	id := r.session(p, cove.Spec{FixedEnd: true, OnEnd: cove.EndStop, Wake: true, Idle: time.Hour}).ID
	r.write(p, id, "f", "kept")
	r.reachEnd(p, id)
	r.wantState(p, id, cove.Stopped) // looking at it does not wake it
	if list := all(r, p.Processes(id).List(r.ctx)); len(list) > 0 {
		t.Errorf("a stopped session has programs: %+v", list)
	}
	r.wantState(p, id, cove.Stopped)
	same(t, "a file, read by who wakes the session", r.read(p, id, "f"), "kept")
	if got := r.get(p, id); got.State != cove.Running || got.ExpiresAt.After(time.Now().Add(time.Hour)) {
		t.Errorf("after use the session is %s until %s", got.State, got.ExpiresAt)
	}
	if done := r.pairs(r.events(cove.EventFilter{Kind: string(cove.SessionStart), Session: id})); len(done) != 1 || done[0].Code != "" || done[0].Principal == "" {
		t.Errorf("the journal tells the waking as %+v", done)
	}
	r.stop(p, id)
	same(t, "a program, run by who wakes the session", r.sh(p, id, "cat f"), "kept")
}

func wakePaused(t *testing.T, s *suite) {
	r := s.start(t, Options{AutoRetry: new(false)})
	r.needs(cove.PowerPause)
	p := r.user("acme")
	id := r.session(p, cove.Spec{OnEnd: cove.EndPause, Wake: true, Idle: time.Hour}).ID
	_, err := p.Snapshots().Pause(r.ctx, id)
	r.must(err, "pause")
	same(t, "a program, run by who wakes the session", r.sh(p, id, "echo on"), "on\n")
	r.wantState(p, id, cove.Running)
	r.reachEnd(p, id)
	r.wantState(p, id, cove.Paused)
	pid := r.background(p, id, cove.ExecRequest{Line: "true"})
	if e := r.wait(p, id, pid); e.ExitCode != 0 {
		t.Errorf("a program that woke the session ended as %+v", e.Result)
	}
	// Its caller paused it first, and then the server did.
	done, notes := r.pairs(r.events(cove.EventFilter{Kind: string(cove.SnapshotResume), Session: id})), r.events(cove.EventFilter{Kind: "session.resumed", Session: id})
	if len(done) != 1 || len(notes) != 1 || notes[0].Phase != cove.EngineNote {
		t.Errorf("the journal tells the waking as %+v and %+v", done, notes)
	}
}

// wakeIfAllowed: waking is an action of its own.
func wakeIfAllowed(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{Wake: true}).ID
	r.stop(p, id)
	runner := r.as(cove.Principal{Name: "runner", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeExec}})
	_, err := runner.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantCode(t, err, cove.Denied)
	r.wantState(p, id, cove.Stopped)
}
