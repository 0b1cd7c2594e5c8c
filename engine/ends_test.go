package engine_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// rarely has the expiry task come round by itself hardly ever.
func rarely(c *engine.Config) { c.CleanupInterval = 1000 * time.Hour }

func TestAFixedEndComesOnTimeWhateverRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{FixedEnd: true, Idle: 10 * time.Minute, OnEnd: cove.EndClose})
		if s.Spec.Lifetime != 0 {
			t.Errorf("a session with a fixed end got a lifetime of %s", s.Spec.Lifetime)
		}
		background(t, p, s.ID, cove.ExecRequest{Line: "sleep 36000"})
		after(9*time.Minute + 59*time.Second)
		sh(t, p, s.ID, "true")
		if got := state(t, p, s.ID); got != cove.Running {
			t.Fatalf("a second before its end the session is %s", got)
		}
		after(time.Second)
		if n := held(t, w.provider); n != 0 {
			t.Errorf("at the end of the session the provider still holds %d sandboxes", n)
		}
		_, err := p.Sessions().Get(t.Context(), s.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
	}, rarely)
}

func TestRenewMovesAFixedEndBothWays(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, _ *engine.Engine, p cove.Platform) {
		long := mustOpen(t, p, cove.Spec{FixedEnd: true, Idle: time.Minute, OnEnd: cove.EndClose})
		short := mustOpen(t, p, cove.Spec{FixedEnd: true, Idle: time.Hour, OnEnd: cove.EndClose})
		for s, d := range map[*cove.Session]time.Duration{long: 2 * time.Hour, short: 10 * time.Second} {
			if _, err := p.Sessions().Renew(t.Context(), s.ID, d); err != nil {
				t.Fatal(err)
			}
		}
		after(10 * time.Second)
		if n := held(t, w.provider); n != 1 {
			t.Errorf("%d sandboxes are there after the end that was moved closer", n)
		}
		after(2*time.Hour - 11*time.Second)
		if got := state(t, p, long.ID); got != cove.Running {
			t.Errorf("before the end that was moved away the session is %s", got)
		}
		after(time.Second)
		if n := held(t, w.provider); n != 0 {
			t.Errorf("%d sandboxes are there after all ends", n)
		}
	}, rarely)
}

func TestWhatHappensAtTheEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		spec cove.Spec
		want cove.State
		note string
	}{
		"stop, fixed":  {cove.Spec{FixedEnd: true, OnEnd: cove.EndStop}, cove.Stopped, "session.stopped"},
		"pause, fixed": {cove.Spec{FixedEnd: true, OnEnd: cove.EndPause}, cove.Paused, "session.paused"},
		"stop, idle":   {cove.Spec{OnEnd: cove.EndStop, Lifetime: 1000 * time.Hour}, cove.Stopped, "session.stopped"},
		"pause, idle":  {cove.Spec{OnEnd: cove.EndPause, Lifetime: 1000 * time.Hour}, cove.Paused, "session.paused"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world, _ *engine.Engine, p cove.Platform) {
				tt.spec.Idle = 10 * time.Minute
				s := mustOpen(t, p, tt.spec)
				sh(t, p, s.ID, "echo kept > note")
				if tt.spec.FixedEnd {
					background(t, p, s.ID, cove.ExecRequest{Line: "sleep 36000"})
				}
				after(12 * time.Minute)
				if got := state(t, p, s.ID); got != tt.want {
					t.Fatalf("after its time the session is %s", got)
				}
				if kinds := journalOf(t, w, s.ID); !slices.Contains(kinds, tt.note) {
					t.Errorf("the journal says %v", kinds)
				}
				after(29 * time.Hour)
				if got := state(t, p, s.ID); got != tt.want {
					t.Errorf("after 29 hours the session is %s", got)
				}
				after(time.Hour)
				_, err := p.Sessions().Get(t.Context(), s.ID)
				wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
				after(time.Minute)
				if n := held(t, w.provider); n != 0 {
					t.Errorf("the provider still holds %d sandboxes", n)
				}
			}, func(c *engine.Config) { c.KeepPaused = 30 * time.Hour })
		})
	}
}

func TestALifetimeEndsWhatWouldBeStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: cove.EndStop, Idle: 2 * time.Hour, Lifetime: time.Hour})
		after(time.Hour + time.Second)
		_, err := p.Sessions().Get(t.Context(), s.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
	})
}

// TestUseAfterTheFixedEndMeetsAStoppedSession: not only the task sees to it that a
// session rests after its time.
func TestUseAfterTheFixedEndMeetsAStoppedSession(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		spec := cove.Spec{User: "u", OnEnd: cove.EndStop, FixedEnd: true, Idle: time.Minute}
		s := mustOpen(t, p, spec)
		sh(t, p, s.ID, "echo kept > note")
		after(2 * time.Minute)
		_, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
		wantCode(t, err, cove.Conflict, cove.ReasonSessionStopped)
		if again := mustOpen(t, p, spec); again.ID != s.ID || again.State != cove.Running {
			t.Errorf("opening it again gave %s, %s", again.ID, again.State)
		}
		after(2 * time.Minute)
		if again := mustOpen(t, p, spec); again.ID != s.ID || again.State != cove.Running {
			t.Errorf("opening it after its second end gave %s, %s", again.ID, again.State)
		}
		if got := sh(t, p, s.ID, "cat note"); got != "kept\n" {
			t.Errorf("the file holds %q", got)
		}
	}, rarely)
}

func TestManyWakeOneSession(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: cove.EndStop, Wake: true, Idle: time.Minute})
		sh(t, p, s.ID, "echo kept > note")
		after(time.Minute)
		if got := state(t, p, s.ID); got != cove.Stopped {
			t.Fatalf("after its time the session is %s", got)
		}
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() {
				x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "cat note"})
				if err == nil && string(x.Stdout.Data) != "kept\n" {
					t.Errorf("the file holds %q", x.Stdout.Data)
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := held(t, w.provider); n != 1 {
			t.Errorf("%d sandboxes were made for one session", n)
		}
		if got, err := p.Sessions().Get(t.Context(), s.ID); err != nil || !got.ExpiresAt.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("the session that came back ends at %v (%v)", got.ExpiresAt, err)
		}
	}, rarely)
}

func TestAFixedEndIsKeptOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.open(rarely)
		p := e.As(boss)
		s := mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: cove.EndPause, Idle: 10 * time.Minute})
		after(8 * time.Minute)
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		p = w.open(rarely).As(boss)
		if got, err := p.Sessions().Get(t.Context(), s.ID); err != nil || !got.ExpiresAt.Equal(s.ExpiresAt) {
			t.Errorf("the end was %s and is %v after the restart (%v)", s.ExpiresAt, got, err)
		}
		after(2 * time.Minute)
		if got := state(t, p, s.ID); got != cove.Paused {
			t.Errorf("after its time the session is %s", got)
		}
	})
}

func TestAnEndThatCannotBeIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		w := newWorld(t, func(c *fake.Config) {
			c.Hook = func(step string, _ cove.ID) error {
				if step == "pause" && broken.Load() {
					return errInjected
				}
				return nil
			}
		})
		p := w.open(func(c *engine.Config) { c.KeepPaused = 3 * time.Hour }).As(boss)
		s := mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: cove.EndPause, Wake: true, Idle: 10 * time.Minute})
		gone := mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: cove.EndPause, Idle: 10 * time.Minute})
		broken.Store(true)
		after(12 * time.Minute)
		if got := state(t, p, s.ID); got != cove.Running {
			t.Errorf("a session that cannot be paused is %s", got)
		}
		if _, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"}); err == nil {
			t.Error("something runs in a session past its end")
		}
		if _, err := p.Sessions().Renew(t.Context(), s.ID, 4*time.Hour); err != nil {
			t.Fatal(err)
		}
		after(3 * time.Hour)
		_, err := p.Sessions().Get(t.Context(), gone.ID)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
		broken.Store(false)
		after(time.Hour)
		if got := state(t, p, s.ID); got != cove.Paused {
			t.Errorf("once it can be paused the session is %s", got)
		}
	})
}
