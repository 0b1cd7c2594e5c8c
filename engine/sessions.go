package engine

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// sessions is the part of the platform that opens, finds and ends.
type sessions struct{ v view }

func on(verb cove.Verb, id cove.ID) action {
	return action{Action: cove.Action{Verb: verb}, on: true, id: id}
}

// Open implements [cove.Sessions].
func (p sessions) Open(ctx context.Context, req cove.OpenRequest) (*cove.Session, error) {
	e := p.v.e
	a := action{Action: cove.Action{Verb: cove.SessionOpen, Spec: &req.Spec}, data: e.specOf(req.Spec)}
	return act(ctx, p.v, a, func(ctx context.Context, st *step) (*cove.Session, error) {
		s, err := once(ctx, e, p.v.p, deed[*cove.Session]{
			key: req.IdempotencyKey, verb: cove.SessionOpen, what: req.Spec,
			do:    func(id cove.ID) (*cove.Session, cove.ID, error) { return idOf(e.getOrCreate(ctx, p.v.p, req, id)) },
			again: func(id cove.ID) (*cove.Session, error) { return e.claimed(p.v.p.Tenant, id) },
		})
		if err != nil {
			return nil, err
		}
		st.outcome.Session, st.outcome.Provider = s.ID, s.Provider
		return s, nil
	})
}

// Get implements [cove.Sessions].
func (p sessions) Get(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return act(ctx, p.v, on(cove.SessionGet, id), func(_ context.Context, st *step) (*cove.Session, error) {
		return st.lease.view(), nil
	})
}

// List implements [cove.Sessions]. It yields the table as it was when the loop
// began.
func (p sessions) List(ctx context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	a := action{Action: cove.Action{Verb: cove.SessionList}}
	return actSeq(ctx, p.v, a, func(context.Context, *step) (iter.Seq2[*cove.Session, error], error) {
		f.Tenant = p.v.p.Tenant
		var found []*cove.Session
		now := time.Now()
		for _, l := range p.v.e.snapshotLeases() {
			if _, over := l.over(now); over {
				continue
			}
			if s := l.view(); s.ID > f.After && f.Match(s) {
				found = append(found, s)
			}
		}
		slices.SortFunc(found, func(a, b *cove.Session) int { return strings.Compare(string(a.ID), string(b.ID)) })
		if f.Limit > 0 && len(found) > f.Limit {
			found = found[:f.Limit]
		}
		return each(found), nil
	})
}

// each yields the elements of a list.
func each[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// Renew implements [cove.Sessions]. Where the session's time is up, it waits for what
// that leads to: the answer says how the session is then.
func (p sessions) Renew(ctx context.Context, id cove.ID, d time.Duration) (*cove.Session, error) {
	return act(ctx, p.v, on(cove.SessionRenew, id), func(ctx context.Context, st *step) (*cove.Session, error) {
		if d < 0 || d > 366*24*time.Hour {
			return nil, cove.InvalidField("timeout_minutes", "%s is not a time to renew for; use more than 0", d)
		}
		l := st.lease
		if !l.renew(d, false) {
			if err := l.takeTurn(ctx); err != nil {
				return nil, err
			}
			defer l.giveTurn()
			if s := l.view(); s.State == cove.Ended {
				return nil, gone(s)
			}
			if cause, over := l.over(time.Now()); over {
				return nil, gone(&cove.Session{Cause: cause})
			}
			l.renew(d, true)
		}
		if err := p.v.e.save(ctx, l); err != nil {
			return nil, err
		}
		return l.view(), nil
	})
}

// Stop implements [cove.Sessions]. Stopping a stopped session is no error; one that the
// server stopped does not come back by itself then.
func (p sessions) Stop(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return p.change(ctx, cove.SessionStop, id, func(ctx context.Context, l *lease, s *cove.Session) error {
		if err := decided(s); err != nil {
			return err
		}
		switch s.State {
		case cove.Stopped:
			return p.v.e.keepResting(ctx, l, cove.ReasonSessionStopped)
		case cove.Running:
			return p.v.e.rest(ctx, l, cove.ReasonSessionStopped)
		case cove.Paused:
			if err := p.v.e.thaw(ctx, l); err != nil {
				return err
			}
			return p.v.e.rest(ctx, l, cove.ReasonSessionStopped)
		case cove.Creating, cove.Failed, cove.Ended:
		}
		return usable(s)
	})
}

// Start implements [cove.Sessions]. Starting a running session is no error.
func (p sessions) Start(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return p.change(ctx, cove.SessionStart, id, func(ctx context.Context, l *lease, s *cove.Session) error {
		if s.State == cove.Stopped {
			return p.v.e.wake(ctx, l, cove.RejectWhenFull, nil)
		}
		return usable(s)
	})
}

// change is the road for what moves a session to another state: it waits for
// the turn and looks at the state again before it acts.
func (p sessions) change(ctx context.Context, verb cove.Verb, id cove.ID, do func(context.Context, *lease, *cove.Session) error) (*cove.Session, error) {
	return p.move(ctx, on(verb, id), do)
}

// move is change for an action that says more than its verb.
func (p sessions) move(ctx context.Context, a action, do func(context.Context, *lease, *cove.Session) error) (*cove.Session, error) {
	return act(ctx, p.v, a, func(ctx context.Context, st *step) (*cove.Session, error) {
		// One that waits for room has the turn until it gives up.
		gaveUp := a.Verb == cove.SessionClose && st.lease.giveUp(gone(&cove.Session{Cause: cove.ReasonSessionClosed}))
		if err := st.lease.takeTurn(ctx); err != nil {
			return nil, err
		}
		defer st.lease.giveTurn()
		s := st.lease.view()
		switch {
		case s.State == cove.Ended && gaveUp:
			return s, nil // it never came to be
		case s.State == cove.Ended:
			return nil, gone(s)
		}
		if err := do(ctx, st.lease, s); err != nil {
			return nil, err
		}
		return st.lease.view(), nil
	})
}

// Close implements [cove.Sessions]. Of two that close at once one is told
// that the session is gone.
func (p sessions) Close(ctx context.Context, id cove.ID, keep bool) (cove.ID, error) {
	var snapshot cove.ID
	_, err := p.change(ctx, cove.SessionClose, id, func(ctx context.Context, l *lease, s *cove.Session) error {
		if keep {
			if s.State == cove.Stopped { // its files are in the archive, and only a sandbox can be saved
				if err := p.v.e.wake(ctx, l, cove.RejectWhenFull, nil); err != nil {
					return err
				}
				s = l.view()
			}
			saved, err := p.v.e.saveFiles(ctx, l, s, cove.NewID(), "")
			if err != nil {
				return err
			}
			snapshot = saved.ID
		}
		return p.v.e.end(ctx, l, cove.ReasonSessionClosed)
	})
	return snapshot, err
}

// Usage implements [cove.Sessions].
func (p sessions) Usage(ctx context.Context, id cove.ID) (cove.Usage, error) {
	return act(ctx, p.v, on(cove.SessionUsage, id), func(ctx context.Context, st *step) (cove.Usage, error) {
		st.lease.mu.Lock()
		sandbox := st.lease.sandbox
		st.lease.mu.Unlock()
		if sandbox == nil {
			return cove.Usage{}, usable(st.lease.view())
		}
		return sandbox.Usage(ctx)
	})
}
