package platformtest

import (
	"slices"
	"testing"

	"github.com/cove-sandbox/cove"
)

func restartCases() []testCase {
	return []testCase{
		{"live_sessions", restartLive},
		{"programs", restartPrograms},
		{"kept_programs", restartKept},
		{"terminals", restartTerminal},
		{"stopped_sessions", restartStopped},
		{"ended_sessions", restartEnded},
		{"snapshots", restartSnapshots},
		{"keys_and_tenants", restartKeys},
		{"idempotency", restartIdempotency},
		{"journal", restartJournal},
		{"runs", restartRuns},
		{"room", restartRoom},
	}
}

// restartLive: what the provider kept alive answers again; what it could not
// keep is said to be lost.
func restartLive(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	spec := cove.Spec{User: "u", Thread: "t", Env: map[string]string{"A": "1"}}
	made := r.session(p, spec)
	r.write(p, made.ID, "f", "text")
	attach := slices.Contains(r.capabilities().Powers, cove.PowerAttach)
	r.restart()
	p = r.user("acme")
	if !attach {
		_, err := p.Sessions().Get(r.ctx, made.ID)
		wantReason(t, err, cove.NotFound, cove.ReasonNodeLost)
		return
	}
	got := r.get(p, made.ID)
	if got.State != cove.Running || got.Busy || !got.CreatedAt.Equal(made.CreatedAt) || len(got.Spec.Differs(made.Spec)) > 0 {
		t.Errorf("after a restart the session is %+v", got)
	}
	same(t, "its file", r.read(p, made.ID, "f"), "text")
	same(t, "its environment", r.sh(p, made.ID, "echo $A"), "1\n")
	if again := r.session(p, spec); again.ID != made.ID || again.Created {
		t.Error("after a restart the session is not found by its key")
	}
	_, err := r.user("globex").Sessions().Get(r.ctx, made.ID)
	wantReason(t, err, cove.NotFound, cove.ReasonNoSession)
	r.closeNow(p, made.ID)
}

func restartStopped(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{User: "u"}).ID
	r.write(p, id, "f", "text")
	r.stop(p, id)
	r.restart()
	p = r.user("acme")
	r.wantState(p, id, cove.Stopped)
	if again := r.session(p, cove.Spec{User: "u"}); again.ID != id || again.State != cove.Running {
		t.Fatalf("after a restart a stopped session opens as %s, %s", again.ID, again.State)
	}
	same(t, "its file", r.read(p, id, "f"), "text")
}

func restartEnded(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.closeNow(p, id)
	r.restart()
	_, err := r.user("acme").Sessions().Get(r.ctx, id)
	wantReason(t, err, cove.NotFound, cove.ReasonSessionClosed)
}

func restartSnapshots(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerSnapshot)
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "f", "text")
	saved, err := p.Snapshots().Snapshot(r.ctx, id, cove.SnapshotRequest{Name: "s"})
	r.must(err, "snapshot")
	r.closeNow(p, id)
	r.restart()
	p = r.user("acme")
	list := all(r, p.Snapshots().List(r.ctx, cove.SnapshotFilter{}))
	same(t, "the snapshots", list, []*cove.Snapshot{saved})
	same(t, "a file of the snapshot", r.read(p, r.session(p, cove.Spec{Snapshot: saved.ID}).ID, "f"), "text")
}

func restartKeys(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	key, _, err := r.admin().Admin().CreateKey(r.ctx, cove.KeyRequest{Name: "k", Scopes: []cove.Scope{cove.ScopeRead}})
	r.must(err, "create a key")
	r.setQuota(cove.Bounds{Sessions: 3})
	r.restart()
	same(t, "the key", r.key(key.ID), key)
	got, err := r.admin().Admin().Tenant(r.ctx, "acme")
	r.must(err, "get a tenant")
	same(t, "the quota", got.Quota, cove.Bounds{Sessions: 3})
}

func restartIdempotency(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerAttach)
	one, err := r.user("acme").Sessions().Open(r.ctx, keyed("k", "p"))
	r.must(err, "open")
	r.restart()
	two, err := r.user("acme").Sessions().Open(r.ctx, keyed("k", "p"))
	r.must(err, "open again after a restart")
	if one.ID != two.ID {
		t.Error("after a restart an idempotency key gave another session")
	}
	_, err = r.user("acme").Sessions().Open(r.ctx, keyed("k", "q"))
	wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
}

func restartJournal(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	id := r.session(r.user("acme"), cove.Spec{}).ID
	before := r.events(cove.EventFilter{Session: id})
	last := r.newest()
	r.restart()
	r.session(r.user("acme"), cove.Spec{})
	after := r.events(cove.EventFilter{Session: id})
	if len(after) < len(before) {
		t.Fatalf("the journal had %d lines about a session and now has %d", len(before), len(after))
	}
	same(t, "the old lines", after[:len(before)], before)
	if r.newest() <= last {
		t.Error("after a restart the journal does not go on where it ended")
	}
}

// restartRuns: a run that the restart cut off does not go on for ever.
func restartRuns(t *testing.T, s *suite) {
	r, runs, q := s.runs(t)
	going, err := runs.Submit(r.ctx, q.Hang)
	r.must(err, "submit")
	done, err := runs.Submit(r.ctx, q.Good)
	r.must(err, "submit")
	done, err = runs.Wait(r.ctx, done.ID)
	r.must(err, "wait")
	r.restart()
	runs = r.user("acme").Runs()
	got, err := runs.Wait(r.ctx, going.ID)
	r.must(err, "wait for a run that a restart cut off")
	if got.State != cove.RunFailed || got.Answer == nil || got.Answer.Error == nil {
		t.Errorf("a run that a restart cut off is %+v", got)
	}
	kept, err := runs.Get(r.ctx, done.ID)
	r.must(err, "get")
	same(t, "a run that had finished", kept, done)
}

// restartRoom: what lives on takes room, and what is gone takes none.
func restartRoom(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 2})
	r.needs(cove.PowerAttach)
	p := r.user("acme")
	one, two := r.session(p, cove.Spec{}).ID, r.session(p, cove.Spec{}).ID
	r.restart()
	p = r.user("acme")
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{})
	wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
	r.closeNow(p, one)
	r.session(p, cove.Spec{})
	if got := r.stats(r.admin()).ActiveSessions; got != 2 {
		t.Errorf("%d sessions are active, want 2", got)
	}
	r.wantState(p, two, cove.Running)
}
