package engine_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// ran runs a line in a session and reports whether the answer says that the session was
// started again.
func ran(t *testing.T, p cove.Platform, id cove.ID, line, want string) (restarted bool) {
	t.Helper()
	x, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: line})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(x.Stdout.Data); got != want {
		t.Errorf("%s wrote %q, want %q", line, got, want)
	}
	return x.Restarted
}

func TestEvictedSessionsComeBackOnUse(t *testing.T) {
	w := newWorld(t)
	e := w.open(oneRoom)
	p := e.As(boss)
	// A key for a model: it can neither start nor open a session.
	runner := e.As(cove.Principal{Name: "model", Tenant: boss.Tenant, Scopes: []cove.Scope{cove.ScopeExec}})
	a := mustOpen(t, p, cove.Spec{User: "a"})
	if ran(t, p, a.ID, "echo kept > f", "") {
		t.Error("the first program of a session says that it was started again")
	}
	b := mustOpen(t, p, cove.Spec{User: "b"})
	if got, err := p.Sessions().Get(t.Context(), a.ID); err != nil || got.State != cove.Stopped || got.Cause != cove.ReasonEvicted {
		t.Fatalf("the evicted session is %+v, %v", got, err)
	}
	if !ran(t, runner, a.ID, "cat f", "kept\n") {
		t.Error("the answer does not say that the session was started again")
	}
	if ran(t, runner, a.ID, "cat f", "kept\n") {
		t.Error("the second answer says it again")
	}
	if got := state(t, p, b.ID); got != cove.Stopped {
		t.Errorf("the other session is %s", got)
	}
	if err := p.Files(b.ID).Write(t.Context(), "g", strings.NewReader("text"), 0); err != nil {
		t.Fatal(err)
	}
	if !ran(t, p, b.ID, "cat g", "text") {
		t.Error("the session was started by an upload, and the first answer does not say so")
	}
	if kinds := journalOf(t, w, a.ID); !slices.Contains(kinds, "session.resumed") {
		t.Errorf("the journal says %v", kinds)
	}
}

// TestEvictionNeverMeetsAProgram: callers of many sessions that push each other out all
// get their answers.
func TestEvictionNeverMeetsAProgram(t *testing.T) {
	p := openEngine(t, func(c *engine.Config) { c.MaxSessions, c.Evict = 4, true }).As(boss)
	var ids []cove.ID
	for range 8 {
		ids = append(ids, mustOpen(t, p, cove.Spec{}).ID)
	}
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			for range 20 {
				x, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "echo done"})
				switch {
				case cove.ReasonOf(err) == cove.ReasonCapacity: // all are in use: it is to try again
				case err != nil:
					t.Errorf("a program was refused: %v", err)
				case x.Outcome != cove.Exited || string(x.Stdout.Data) != "done\n":
					t.Errorf("a program ended as %+v", x)
				}
			}
		})
	}
	all.Wait()
}

func TestIdleSessionsKeepTheirFiles(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{Idle: 10 * time.Minute})
		gone := mustOpen(t, p, cove.Spec{Idle: 10 * time.Minute, OnEnd: cove.EndClose})
		if s.Spec.OnEnd != cove.EndStop || s.Spec.Lifetime != 0 || gone.Spec.Lifetime != 24*time.Hour {
			t.Errorf("the session ends by %q and lives for %s; the other lives for %s", s.Spec.OnEnd, s.Spec.Lifetime, gone.Spec.Lifetime)
		}
		ran(t, p, s.ID, "echo kept > f", "")
		after(12 * time.Minute)
		if got, err := p.Sessions().Get(t.Context(), s.ID); err != nil || got.State != cove.Stopped || got.Cause != cove.ReasonSessionExpired {
			t.Fatalf("after its idle time the session is %+v, %v", got, err)
		}
		if n := held(t, w.provider); n != 0 {
			t.Errorf("the provider holds %d sandboxes", n)
		}
		if report, err := p.Admin().Tenant(t.Context(), cove.DefaultTenant); err != nil || report.Disk.Archives == 0 {
			t.Errorf("the kept files do not count: %+v, %v", report, err)
		}
		_, err := p.Sessions().Get(t.Context(), gone.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
		after(46 * time.Hour)
		if !ran(t, p, s.ID, "cat f", "kept\n") {
			t.Error("the answer does not say that the session was started again")
		}
		after(48*time.Hour + 12*time.Minute)
		_, err = p.Sessions().Get(t.Context(), s.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
	}, func(c *engine.Config) { c.KeepPaused = 48 * time.Hour })
}

// TestUseAtTheIdleEndLosesNothing: a session whose idle time is over and that was not
// stopped yet goes on.
func TestUseAtTheIdleEndLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		spec := cove.Spec{User: "u", Idle: time.Minute}
		s := mustOpen(t, p, spec)
		after(2 * time.Minute)
		if ran(t, p, s.ID, "echo kept > f", "") {
			t.Error("the session was stopped by its use")
		}
		after(2 * time.Minute)
		if again := mustOpen(t, p, spec); again.ID != s.ID || ran(t, p, s.ID, "cat f", "kept\n") {
			t.Errorf("opening it gave %s, or stopped it", again.ID)
		}
	}, rarely)
}

func TestCallersStopsAreKept(t *testing.T) {
	p := openEngine(t, oneRoom).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	_, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
	wantCode(t, err, cove.Conflict, cove.ReasonSessionStopped)
	if text := cove.RemedyOf(err); !strings.Contains(text, "cove sandbox start") || !strings.Contains(text, "POST /api/sandboxes/{id}/start") {
		t.Errorf("the remedy is %q", text)
	}
	if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if ran(t, p, s.ID, "true", "") {
		t.Error("the answer tells a caller that its own session was started, which that caller did")
	}
	// One that its caller paused stays paused for whoever uses it, also when it was
	// stopped for room; resume brings it back.
	if _, err := p.Snapshots().Pause(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, p, cove.Spec{})
	if got := state(t, p, s.ID); got != cove.Stopped {
		t.Fatalf("the evicted session is %s", got)
	}
	_, err = p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
	wantCode(t, err, cove.Conflict, cove.ReasonSessionStopped)
	if got, err := p.Snapshots().Resume(t.Context(), s.ID); err != nil || got.State != cove.Running {
		t.Errorf("resume gave %+v, %v", got, err)
	}
}

// TestStopsOfEvictedSessionsAreKept: a caller that stops what the server has stopped does
// not want it back either.
func TestStopsOfEvictedSessionsAreKept(t *testing.T) {
	p := openEngine(t, oneRoom).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	mustOpen(t, p, cove.Spec{})
	if got := state(t, p, s.ID); got != cove.Stopped {
		t.Fatalf("the evicted session is %s", got)
	}
	if got, err := p.Sessions().Stop(t.Context(), s.ID); err != nil || got.State != cove.Stopped || got.Cause != cove.ReasonSessionStopped {
		t.Errorf("stop gave %+v, %v", got, err)
	}
	_, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
	wantCode(t, err, cove.Conflict, cove.ReasonSessionStopped)
	if got, err := p.Sessions().Start(t.Context(), s.ID); err != nil || got.State != cove.Running {
		t.Errorf("start gave %+v, %v", got, err)
	}
}

// TestProgramsHoldASessionForADay: a session without a lifetime is stopped after a day
// with what runs in it, and keeps its files.
func TestProgramsHoldASessionForADay(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{})
		ran(t, p, s.ID, "echo kept > f", "")
		background(t, p, s.ID, cove.ExecRequest{Line: "sleep 1000000"})
		after(23 * time.Hour)
		if got := state(t, p, s.ID); got != cove.Running {
			t.Fatalf("a session with a program is %s", got)
		}
		after(time.Hour + 2*time.Minute)
		if got := state(t, p, s.ID); got != cove.Stopped {
			t.Fatalf("after a day the session is %s", got)
		}
		if !ran(t, p, s.ID, "cat f", "kept\n") {
			t.Error("the answer does not say that the session was started again")
		}
		after(20 * time.Minute)
		if got := state(t, p, s.ID); got != cove.Running {
			t.Errorf("its day did not begin anew: it is %s", got)
		}
	})
}

// TestOldRecordsKeepTheirEnd: a record of an older version says nothing of its end, which
// meant that the session ends.
func TestOldRecordsKeepTheirEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, e *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{User: "u", Idle: time.Hour, OnEnd: cove.EndClose})
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		rec, err := w.store.GetSession(t.Context(), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		rec.Spec.OnEnd = ""
		if err := w.store.PutSession(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		p = w.open().As(boss)
		if again := mustOpen(t, p, cove.Spec{User: "u", OnEnd: cove.EndClose}); again.ID != s.ID {
			t.Errorf("asking for its end opened %s", again.ID)
		}
		after(2 * time.Hour)
		_, err = p.Sessions().Get(t.Context(), s.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
	})
}

// TestNoRoomToComeBack: where there is no room for a session that the server stopped, its
// callers are told at once, also while another caller waits for room for it.
func TestNoRoomToComeBack(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		a := mustOpen(t, p, cove.Spec{User: "a"})
		b := mustOpen(t, p, cove.Spec{User: "b"})
		background(t, p, b.ID, cove.ExecRequest{Line: "sleep 600"})
		full := func(when string) {
			t.Helper()
			_, err := p.Processes(a.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
			wantCode(t, err, cove.Exhausted, cove.ReasonCapacity)
			if got := state(t, p, b.ID); got != cove.Running {
				t.Errorf("%s the session that is in use is %s", when, got)
			}
		}
		full("at first")
		waited := make(chan error, 1)
		go func() {
			_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: "a"}, OnFull: cove.WaitWhenFull})
			waited <- err
		}()
		synctest.Wait()
		full("while a caller waits")
		after(10 * time.Minute)
		if err := <-waited; err != nil {
			t.Fatal(err)
		}
		if !ran(t, p, a.ID, "true", "") {
			t.Error("the answer does not say that the session was started again")
		}
	}, oneRoom)
}
