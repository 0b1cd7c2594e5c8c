package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// sight is one action as the observer sees it. A nil one is that of nobody:
// its methods do nothing.
type sight struct {
	cove.Ending

	moved *atomic.Int64
	tell  func(cove.Ending)
}

// observe tells the observer, if there is one, that an action begins.
func (v view) observe(ctx context.Context, a *action) (context.Context, *sight) {
	if v.e.cfg.Observer == nil {
		return ctx, nil
	}
	s := &sight{moved: a.moved}
	if a.Session != nil {
		s.Observed = observed(a.Session)
	} else if a.Spec != nil {
		s.User, s.Thread = short(a.Spec.User), short(a.Spec.Thread)
	}
	s.Verb, s.Principal, s.Tenant = a.Verb, a.Principal.Name, a.Principal.Tenant
	s.Began = time.Now()
	ctx, s.tell = v.e.cfg.Observer.Begin(ctx, s.Observed)
	return ctx, s
}

func (s *sight) decided() {
	if s != nil {
		s.Decided = time.Now()
	}
}

func (s *sight) intended() {
	if s != nil {
		s.Intended = time.Now()
	}
}

func (s *sight) done(st *step) {
	if s == nil {
		return
	}
	s.Done = time.Now()
	s.Outcome, s.ExitCode = st.outcome.Outcome, st.exit
	s.Session, s.Provider = st.outcome.Session, st.outcome.Provider
}

// over tells the observer how the action went.
func (s *sight) over(d cove.Decision, err error) {
	if s == nil || s.tell == nil {
		return
	}
	s.Ended = time.Now()
	s.Effect, s.Code, s.Reason = d.Effect, cove.CodeOf(err), cove.ReasonOf(err)
	if err == nil && d.Effect != cove.Allow {
		s.Code = cove.Denied
		if d.Effect == cove.Deny && d.Layer == cove.Content {
			s.Outcome = cove.Blocked
		}
	}
	if s.moved != nil {
		s.Bytes = s.moved.Load()
	}
	s.tell(s.Ending)
}

// observed is what an observer gets to know of a session.
func observed(s *cove.Session) cove.Observed {
	return cove.Observed{
		Tenant: s.Tenant, Session: s.ID, Provider: s.Provider, User: short(s.Spec.User), Thread: short(s.Spec.Thread),
	}
}

// tell tells the observer, if there is one, what happened to a session.
func (e *Engine) tell(ctx context.Context, s *cove.Session, h cove.Happening) {
	if e.cfg.Observer == nil {
		return
	}
	h.Observed, h.Instead = observed(s), s.Instead
	e.cfg.Observer.Note(ctx, h)
}

// tellOf is tell for who has only the lease.
func (e *Engine) tellOf(ctx context.Context, l *lease, h cove.Happening) {
	if e.cfg.Observer != nil {
		e.tell(ctx, l.view(), h)
	}
}

// tellSessionEnd tells that a session has ended.
func (e *Engine) tellSessionEnd(ctx context.Context, l *lease) {
	if e.cfg.Observer == nil {
		return
	}
	s := l.view()
	e.tell(ctx, s, cove.Happening{Kind: cove.SessionEnded, Cause: s.Cause, Wall: s.EndedAt.Sub(s.CreatedAt)})
}

// tellEnd tells that a background program has ended.
func (e *Engine) tellEnd(ctx context.Context, l *lease, pr *process) {
	h := cove.Happening{Kind: cove.ProgramEnded, Code: cove.CodeOf(pr.err), Wall: time.Since(pr.info.StartedAt)}
	if pr.out != nil {
		h.Outcome, h.ExitCode = pr.out.Outcome, pr.out.ExitCode
	}
	e.tellOf(ctx, l, h)
}

// tellPool tells whether the pool had a sandbox for a session.
func (e *Engine) tellPool(ctx context.Context, s *cove.Session, hit bool) {
	if e.cfg.PoolSize == 0 {
		return
	}
	kind := cove.PoolMiss
	if hit {
		kind = cove.PoolHit
	}
	e.tell(ctx, s, cove.Happening{Kind: kind})
}
