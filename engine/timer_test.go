package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// after lets time pass inside a bubble, and everything that is due happen.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func state(t *testing.T, p cove.Platform, id cove.ID) cove.State {
	t.Helper()
	s, err := p.Sessions().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s.State
}

// inBubble runs a test with an engine whose clock is the test's.
func inBubble(t *testing.T, test func(t *testing.T, w *world, e *engine.Engine, p cove.Platform), change ...func(*engine.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.open(change...)
		test(t, w, e, e.As(boss))
	})
}

func TestIdleSessionsExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{User: "u", Idle: 10 * time.Minute, OnEnd: cove.EndClose})
		after(9 * time.Minute)
		sh(t, p, s.ID, "true") // activity starts the time anew
		after(9 * time.Minute)
		if got := state(t, p, s.ID); got != cove.Running {
			t.Fatalf("a session in use is %s", got)
		}
		after(12 * time.Minute)
		_, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
		if n := held(t, w.provider); n != 0 {
			t.Errorf("the provider still holds %d sandboxes", n)
		}
		if again := mustOpen(t, p, cove.Spec{User: "u"}); again.ID == s.ID || !again.Created {
			t.Error("the key of an expired session gives the old one")
		}
	})
}

func TestAnExpiredSessionIsGoneBeforeTheReaperComes(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{User: "u", Idle: time.Minute, OnEnd: cove.EndClose})
		after(2 * time.Minute)
		_, err := p.Sessions().Get(t.Context(), s.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
		for s, err := range p.Sessions().List(t.Context(), cove.SessionFilter{}) {
			t.Errorf("an expired session is listed: %v %v", s, err)
		}
		if again := mustOpen(t, p, cove.Spec{User: "u"}); again.ID == s.ID {
			t.Error("an expired session was handed out")
		}
	}, func(c *engine.Config) { c.CleanupInterval = time.Hour })
}

func TestLifetimeEndsEvenABusySession(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{Idle: 10 * time.Minute, Lifetime: time.Hour})
		info, err := p.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: "sleep 36000"})
		if err != nil {
			t.Fatal(err)
		}
		after(50 * time.Minute)
		if got := state(t, p, s.ID); got != cove.Running {
			t.Fatalf("a session in which a program runs is %s after its idle time", got)
		}
		if _, err := p.Sessions().Renew(t.Context(), s.ID, 5*time.Hour); err != nil {
			t.Fatal(err)
		}
		after(12 * time.Minute)
		_, err = p.Processes(s.ID).Wait(t.Context(), info.PID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
	})
}

func TestRenewMovesTheDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{Idle: 10 * time.Minute})
		r, err := p.Sessions().Renew(t.Context(), s.ID, time.Hour)
		if err != nil || !r.ExpiresAt.Equal(time.Now().Add(time.Hour)) {
			t.Errorf("renewed until %v (%v)", r.ExpiresAt, err)
		}
		after(50 * time.Minute)
		if got := state(t, p, s.ID); got != cove.Running {
			t.Errorf("a renewed session is %s", got)
		}
		if r, err = p.Sessions().Renew(t.Context(), s.ID, 0); err != nil || !r.ExpiresAt.Equal(time.Now().Add(10*time.Minute)) {
			t.Errorf("renewed by its own time until %v (%v)", r.ExpiresAt, err)
		}
		for _, bad := range []time.Duration{-1, 400 * 24 * time.Hour} {
			_, err = p.Sessions().Renew(t.Context(), s.ID, bad)
			wantCode(t, err, cove.Invalid, "")
		}
	})
}

func TestStoppedSessionsAreKeptForAWhile(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{User: "u", Idle: time.Minute, OnEnd: cove.EndClose, Lifetime: 100 * time.Hour})
		sh(t, p, s.ID, "echo kept > note")
		if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		after(23 * time.Hour)
		if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if got := sh(t, p, s.ID, "cat note"); got != "kept\n" {
			t.Errorf("the file holds %q", got)
		}
		if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		after(25 * time.Hour)
		_, err := p.Sessions().Start(t.Context(), s.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
	})
}

func TestEndedSessionsAreForgottenInTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{})
		if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		_, err := p.Sessions().Get(t.Context(), s.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionClosed)
		after(25 * time.Hour)
		_, err = p.Sessions().Get(t.Context(), s.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonNoSession)
	})
}

func TestIdempotencyKeysAreRememberedForADay(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		open := func() *cove.Session {
			s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{IdempotencyKey: "k", Spec: cove.Spec{Idle: 100 * time.Hour, Lifetime: 200 * time.Hour}})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		first := open()
		after(23 * time.Hour)
		if again := open(); again.ID != first.ID {
			t.Error("the same key gave another session")
		}
		after(2 * time.Hour)
		if later := open(); later.ID == first.ID {
			t.Error("a key from yesterday still gives the old session")
		}
	})
}

func TestACommandTimesOut(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{})
		began := time.Now()
		x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "sleep 1000"})
		if err != nil || x.Outcome != cove.TimedOut || x.ExitCode != -1 {
			t.Fatalf("%+v, %v", x, err)
		}
		if took := time.Since(began); took != 33*time.Second {
			t.Errorf("the default timeout came after %s", took)
		}
	})
}

func TestACreateThatHangsIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *fake.Config) { c.Latency = time.Hour })
		p := w.open(func(c *engine.Config) { c.StartTimeout = time.Minute }).As(boss)
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: "u"}})
		wantCode(t, err, cove.Timeout, "")
		if n := held(t, w.provider); n != 0 {
			t.Errorf("%d sandboxes are left of a session that was not made", n)
		}
		for s := range w.store.Sessions(t.Context(), cove.SessionFilter{}) {
			t.Errorf("a record is left: %+v", s)
		}
	})
}

func TestAWaitingCallerIsLetInWhenRoomComes(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		first := mustOpen(t, p, cove.Spec{Idle: 5 * time.Minute, OnEnd: cove.EndClose})
		got := make(chan error, 1)
		var told []int
		go func() {
			_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{OnFull: cove.WaitWhenFull, OnQueue: func(at int) { told = append(told, at) }})
			got <- err
		}()
		after(time.Minute)
		if len(got) != 0 || len(told) != 1 || told[0] != 1 {
			t.Fatalf("with one session of one in use, the next got in or was told %v", told)
		}
		after(10 * time.Minute) // the first expires
		if err := <-got; err != nil {
			t.Error(err)
		}
		_, err := p.Sessions().Get(t.Context(), first.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
	}, func(c *engine.Config) { c.MaxSessions = 1 })
}

func TestAProbeIsAskedAgainAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := 0
		w := newWorld(t, func(c *fake.Config) {
			c.Hook = func(step string, _ cove.ID) error {
				if step == "probe" {
					probes++
				}
				return nil
			}
		})
		p := w.open().As(boss)
		probes = 0
		mustOpen(t, p, cove.Spec{})
		mustOpen(t, p, cove.Spec{})
		if probes != 1 {
			t.Errorf("two sessions in a row asked %d times", probes)
		}
		after(11 * time.Second)
		mustOpen(t, p, cove.Spec{})
		if probes != 2 {
			t.Errorf("after eleven seconds it was asked %d times", probes)
		}
	})
}

func TestThePoolIsFilledAndUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *fake.Config) { c.Latency = 5 * time.Second })
		p := w.open(func(c *engine.Config) { c.PoolSize = 2 }).As(boss)
		took := func() time.Duration {
			began := time.Now()
			mustOpen(t, p, cove.Spec{})
			return time.Since(began)
		}
		if d := took(); d != 5*time.Second {
			t.Errorf("the first session took %s, want the provider's five seconds", d)
		}
		after(time.Minute)
		st, err := p.Admin().Stats(t.Context())
		if err != nil || st.PoolAvailable != 2 || st.PoolSize != 2 {
			t.Fatalf("the pool has %d of %d (%v)", st.PoolAvailable, st.PoolSize, err)
		}
		if d := took(); d != 0 {
			t.Errorf("a session from the pool took %s", d)
		}
	})
}

// What is mounted in a sandbox is decided when it is made, so that a session with
// volumes would use a spare up and have nothing of it.
func TestASessionWithVolumesLeavesThePoolAlone(t *testing.T) {
	source := t.TempDir()
	w := &witness{}
	e := openEngine(t, watched(w), func(c *engine.Config) {
		c.PoolSize, c.Shared = 1, []cove.Volume{{Source: source, Target: "/data"}}
	})
	mustOpen(t, e.As(boss), cove.Spec{})
	if got, want := w.kinds(), []string{cove.SessionCreated}; !slices.Equal(got, want) {
		t.Errorf("the happenings are %q, want %q", got, want)
	}
}

func TestAPausedTaskDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, _ *engine.Engine, p cove.Platform) {
		mustOpen(t, p, cove.Spec{Idle: time.Minute})
		control(t, p, "expiry", cove.PauseTask)
		after(10 * time.Minute)
		if n := held(t, w.provider); n != 1 {
			t.Errorf("with expiry paused %d sandboxes are left, want 1", n)
		}
		control(t, p, "expiry", cove.ResumeTask)
		after(2 * time.Minute)
		if n := held(t, w.provider); n != 0 {
			t.Errorf("with expiry resumed %d sandboxes are left, want 0", n)
		}
	})
}

func control(t *testing.T, p cove.Platform, name string, verb cove.TaskVerb) {
	t.Helper()
	if _, err := p.Admin().ControlTask(t.Context(), name, verb); err != nil {
		t.Fatal(err)
	}
}

// held counts what a provider has.
func held(t *testing.T, p cove.Provider) int {
	t.Helper()
	n := 0
	for _, err := range p.List(context.WithoutCancel(t.Context())) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
