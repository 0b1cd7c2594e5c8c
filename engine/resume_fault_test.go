package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// withProgram is a world that has had a session with a running program.
func withProgram(t *testing.T, f *failing) (*world, cove.ID, cove.PID) {
	t.Helper()
	w := newWorld(t, func(c *fake.Config) { c.Hook = f.hook })
	e := w.open()
	s := mustOpen(t, e.As(boss), cove.Spec{})
	pr := background(t, e.As(boss), s.ID, cove.ExecRequest{Line: "echo ready; cat", KeepStdin: true})
	follow(t, e.As(boss), s.ID, pr.PID, 0, "ready\n")
	w.shut(e, w.provider)
	return w, s.ID, pr.PID
}

func TestAProgramThatCannotBeTakenUp(t *testing.T) {
	f := &failing{step: "resume_program"}
	w, id, pid := withProgram(t, f)
	f.on = true
	e := w.open()
	p := e.As(boss)
	if got, err := p.Sessions().Get(t.Context(), id); err != nil || got.State != cove.Running || got.Busy {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := p.Processes(id).Wait(t.Context(), pid)
	wantCode(t, err, cove.NotFound, "")
	if !strings.Contains(cove.MessageOf(err), "no longer known") {
		t.Errorf("the message is %q", cove.MessageOf(err))
	}
	if kinds := journalOf(t, w, id); kinds[len(kinds)-2] != "process.lost" {
		t.Errorf("the journal says %v", kinds)
	}
	if got := keptIn(t, w.provider, id); len(got) != 0 {
		t.Errorf("the provider still keeps %v", got)
	}
	if next := background(t, p, id, cove.ExecRequest{Line: "true"}); next.PID <= pid {
		t.Errorf("the next number is %d", next.PID)
	}
}

func TestProgramsThatCannotBeForgotten(t *testing.T) {
	f := &failing{step: "forget"}
	w, id, _ := withProgram(t, f)
	f.on = true
	p := w.open().As(boss)
	for range 66 {
		pr := background(t, p, id, cove.ExecRequest{Line: "true"})
		if _, err := p.Processes(id).Wait(t.Context(), pr.PID); err != nil {
			t.Fatal(err)
		}
	}
	if f.hits == 0 {
		t.Error("nothing was forgotten")
	}
	if _, err := p.Sessions().Close(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	if n := held(t, w.provider); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// TestKeptProgramsThatCannotBeListed: the session waits for a provider that can,
// and its programs run on.
func TestKeptProgramsThatCannotBeListed(t *testing.T) {
	for _, step := range []string{"kept", "resume", "resume_program"} { // the second lets go on what may be paused
		f := &failing{step: step, with: cove.Errorf(cove.Unavailable, "it is away")}
		w, id, pid := withProgram(t, f)
		f.on = true
		e := w.open()
		got, err := e.As(boss).Sessions().Get(t.Context(), id)
		if err != nil || got.State != cove.Failed || got.Cause != cove.ReasonProviderDown {
			t.Errorf("%s: %+v, %v", step, got, err)
		}
		f.on = false
		p := w.restart(e)
		if err := p.Processes(id).Input(t.Context(), pid, []byte("x\n"), true); err != nil {
			t.Fatal(err)
		}
		if got := follow(t, p, id, pid, 0, ""); got != "ready\nx\n" {
			t.Errorf("%s: the program wrote %q", step, got)
		}
	}
}

// brokenStore takes no record of a session.
type brokenStore struct {
	cove.Store

	broken bool
}

func (s *brokenStore) PutSession(ctx context.Context, rec *cove.Session) error {
	if s.broken {
		return cove.Errorf(cove.Unavailable, "no space left")
	}
	return s.Store.PutSession(ctx, rec)
}

// TestAStartThatFailsLetsGo: the programs run on for the next one.
func TestAStartThatFailsLetsGo(t *testing.T) {
	w, id, pid := withProgram(t, &failing{})
	s := &brokenStore{w.store, true}
	_, err := w.tryOpen(func(c *engine.Config) { c.Store = s })
	wantCode(t, err, cove.Unavailable, "")
	p := w.open().As(boss)
	if err := p.Processes(id).Input(t.Context(), pid, []byte("x\n"), true); err != nil {
		t.Fatal(err)
	}
	if got := follow(t, p, id, pid, 0, ""); got != "ready\nx\n" {
		t.Errorf("the program wrote %q", got)
	}
}

// TestASnapshotThatCannotBeRemoved can be tried again, also when it is half made
// and its provider comes back later.
func TestASnapshotThatCannotBeRemoved(t *testing.T) {
	f := &failing{step: "snapshot"}
	w := newWorld(t, func(c *fake.Config) { c.Hook = f.hook })
	e := w.open()
	p := e.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	saved, err := p.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	f.on = true
	if err := p.Snapshots().Delete(t.Context(), saved.ID); err == nil {
		t.Fatal("the fault was not injected")
	}
	if _, err := p.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{}); err == nil {
		t.Fatal("the fault was not injected")
	}
	shown := func(p cove.Platform) (n int) {
		for _, err := range p.Snapshots().List(t.Context(), cove.SnapshotFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	if n := shown(p); n != 1 {
		t.Errorf("%d snapshots are shown, want the one that could not be removed", n)
	}
	foreign := cove.Snapshot{ID: cove.NewID(), Tenant: cove.DefaultTenant, Session: s.ID, Provider: "gone", Pending: true}
	if err := w.store.PutSnapshot(t.Context(), &foreign); err != nil {
		t.Fatal(err)
	}
	w.shut(e, w.provider)
	e = w.open() // the provider still cannot
	f.on = false
	p = w.restart(e)
	if err := p.Snapshots().Delete(t.Context(), saved.ID); err != nil {
		t.Error(err)
	}
	if n := shown(p); n != 0 {
		t.Errorf("%d snapshots are shown", n)
	}
	left := 0
	for rec := range w.store.Snapshots(t.Context(), cove.SnapshotFilter{}) {
		if left++; rec.ID != foreign.ID {
			t.Errorf("a record is left: %+v", rec)
		}
	}
	if left != 1 {
		t.Error("half a snapshot of a provider that is away was forgotten")
	}
}
