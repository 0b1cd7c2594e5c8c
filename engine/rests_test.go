package engine_test

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// slowArchives write nothing of the sessions that they hold until they are let go.
type slowArchives struct {
	cove.Archives

	held *sync.Map // by session: a channel that is closed when it may go on
	busy *atomic.Int64
	most *atomic.Int64
}

func holdable(c *engine.Config) *slowArchives {
	a := &slowArchives{c.Archives, &sync.Map{}, &atomic.Int64{}, &atomic.Int64{}}
	c.Archives = a
	return a
}

func (a *slowArchives) hold(id cove.ID) (letGo func()) {
	ch := make(chan struct{})
	a.held.Store(id, ch)
	return func() { close(ch) }
}

func (a *slowArchives) Put(ctx context.Context, id cove.ID, r io.Reader) (cove.Bytes, error) {
	if ch, ok := a.held.Load(id); ok {
		a.most.Store(max(a.most.Load(), a.busy.Add(1)))
		defer a.busy.Add(-1)
		select {
		case <-ch.(chan struct{}):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return a.Archives.Put(ctx, id, r)
}

func TestASlowArchiveHoldsUpNoOtherEnd(t *testing.T) {
	var a *slowArchives
	inBubble(t, func(t *testing.T, w *world, _ *engine.Engine, p cove.Platform) {
		stopAt := func(d time.Duration) cove.ID {
			return mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: cove.EndStop, Idle: d}).ID
		}
		first, next := stopAt(time.Minute), stopAt(2*time.Minute)
		closed := mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: cove.EndClose, Idle: 3 * time.Minute}).ID
		letGo := a.hold(first)
		after(3 * time.Minute)
		if got := state(t, p, first); got != cove.Running {
			t.Errorf("a session whose files are not saved is %s", got)
		}
		if got := state(t, p, next); got != cove.Stopped {
			t.Errorf("behind a slow one, a session is %s at its end", got)
		}
		if n := held(t, w.provider); n != 1 {
			t.Errorf("%d sandboxes are there, want that of the slow session", n)
		}
		_, err := p.Sessions().Get(t.Context(), closed)
		wantCode(t, err, cove.NotFound, cove.ReasonSessionExpired)
		letGo()
		synctest.Wait()
		if got := state(t, p, first); got != cove.Stopped {
			t.Errorf("the slow session is %s", got)
		}
		control(t, p, "expiry", cove.RunTask)
		if st, err := p.Admin().Tasks(t.Context()); err != nil || st[0].Done != 3 {
			t.Errorf("the task says %+v (%v), want three that were dealt with", st[0], err)
		}
	}, rarely, func(c *engine.Config) { a = holdable(c) })
}

func TestABoundedNumberRestsAtOnceAndNoneIsForgotten(t *testing.T) {
	var a *slowArchives
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		const many = 40
		ids, goes := make([]cove.ID, many), make([]func(), many)
		for i := range ids {
			ids[i] = mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: cove.EndStop, Idle: time.Minute}).ID
			goes[i] = a.hold(ids[i])
		}
		after(10 * time.Minute) // in which the task runs again and again
		if n := a.busy.Load(); n < 2 || n >= many {
			t.Errorf("%d archives are written at once", n)
		}
		most := a.busy.Load()
		for _, letGo := range goes {
			letGo()
		}
		synctest.Wait()
		if a.most.Load() > most {
			t.Errorf("%d archives were written at once, after %d", a.most.Load(), most)
		}
		for _, id := range ids {
			if got := state(t, p, id); got != cove.Stopped {
				t.Errorf("a session is %s after its time", got)
			}
		}
	}, func(c *engine.Config) { a = holdable(c); c.MaxSessions = 100 })
}

// TestCloseLeavesWhatWaitsToRest: the next engine sees to it.
func TestCloseLeavesWhatWaitsToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var a *slowArchives
		e := w.open(func(c *engine.Config) { a = holdable(c); c.MaxSessions = 100 })
		p := e.As(boss)
		ids := make([]cove.ID, 20)
		for i := range ids {
			ids[i] = mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: cove.EndStop, Idle: time.Minute}).ID
			a.hold(ids[i])
		}
		after(time.Minute)
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		p = w.open(func(c *engine.Config) { c.MaxSessions = 100 }).As(boss)
		after(2 * time.Minute)
		for _, id := range ids {
			if got := state(t, p, id); got != cove.Stopped {
				t.Errorf("a session is %s under the next engine", got)
			}
		}
	})
}

// TestARestThatFailsIsTold: to who has the task run, and by its status.
func TestARestThatFailsIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		mustOpen(t, p, cove.Spec{OnEnd: cove.EndStop, Idle: time.Minute})
		after(2 * time.Minute)
		_, err := p.Admin().ControlTask(t.Context(), "expiry", cove.RunTask)
		wantCode(t, err, cove.Exhausted, "")
		after(10 * time.Minute)
		if st, err := p.Admin().Tasks(t.Context()); err != nil || st[0].LastError == "" {
			t.Errorf("the task says %+v (%v)", st[0], err)
		}
	}, func(c *engine.Config) { c.Archives = fullArchives{c.Archives} })
}

// TestRenewAtTheEndTellsHowTheSessionIs: an answer that says that it runs is no lie.
func TestRenewAtTheEndTellsHowTheSessionIs(t *testing.T) {
	for what, end := range map[cove.State]cove.EndAction{cove.Paused: cove.EndPause, cove.Stopped: cove.EndStop} {
		t.Run(string(what), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				letGo := make(chan struct{})
				w := newWorld(t, func(c *fake.Config) {
					c.Hook = func(step string, _ cove.ID) error {
						if step == "pause" {
							<-letGo
						}
						return nil
					}
				})
				var a *slowArchives
				p := w.open(rarely, func(c *engine.Config) { a = holdable(c) }).As(boss)
				s := mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: end, Idle: time.Minute})
				goOn := a.hold(s.ID)
				after(time.Minute)
				told := make(chan *cove.Session, 1)
				go func() {
					got, err := p.Sessions().Renew(t.Context(), s.ID, time.Hour)
					if err != nil {
						t.Error(err)
					}
					told <- got
				}()
				synctest.Wait()
				if len(told) != 0 {
					t.Errorf("the answer came before the session was %s", what)
				}
				close(letGo)
				goOn()
				if got := <-told; got == nil || got.State != what {
					t.Errorf("renewed when it was %s: %+v", what, got)
				}
			})
		})
	}
}

// TestRenewDoesNotWaitForOthersThanTheEnd: as one that is stopped by hand.
func TestRenewDoesNotWaitForOthersThanTheEnd(t *testing.T) {
	var a *slowArchives
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{FixedEnd: true, OnEnd: cove.EndStop, Idle: time.Hour})
		letGo := a.hold(s.ID)
		stopped := make(chan error, 1)
		go func() {
			_, err := p.Sessions().Stop(t.Context(), s.ID)
			stopped <- err
		}()
		synctest.Wait()
		if got, err := p.Sessions().Renew(t.Context(), s.ID, 2*time.Hour); err != nil || got.State != cove.Running {
			t.Errorf("%+v, %v", got, err)
		}
		letGo()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}, rarely, func(c *engine.Config) { a = holdable(c) })
}
