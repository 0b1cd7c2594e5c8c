package engine

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// lasts reports whether a session is kept for long where it is paused or stopped:
// one whose time does not depend on use, or does not end it.
func lasts(s *cove.Spec) bool { return s.FixedEnd || s.OnEnd.Keeps() }

// keepOf is how long a session of a spec is kept without a sandbox.
func (e *Engine) keepOf(s *cove.Spec) time.Duration {
	if lasts(s) {
		return e.cfg.KeepPaused
	}
	return e.cfg.KeepStopped
}

// timeUp reports whether the session's timeout is reached: what is busy does not
// time out unless the end is fixed, or what it does is held. The caller holds mu.
func (l *lease) timeUp(now time.Time) bool {
	held := l.rec.State == cove.Paused && lasts(&l.rec.Spec)
	return (l.busy == 0 || l.rec.Spec.FixedEnd || held) && !now.Before(l.rec.ExpiresAt)
}

// lifeOver reports whether the session's lifetime is over. The caller holds mu.
func (l *lease) lifeOver(now time.Time) bool {
	life := l.rec.Spec.Lifetime
	return life > 0 && !now.Before(l.rec.CreatedAt.Add(life))
}

// restsNow reports whether the session's time is up and it is to be paused or
// stopped for that. The caller holds mu.
func (l *lease) restsNow(now time.Time) bool {
	return l.rec.State == cove.Running && l.rec.Spec.OnEnd.Keeps() && (l.timeUp(now) || l.runsTooLong(now)) && !l.lifeOver(now)
}

// runsTooLong reports whether a session that has neither a lifetime nor a fixed end runs
// for as long as one may: a program in the background must not hold its room without an end.
// The caller holds mu.
func (l *lease) runsTooLong(now time.Time) bool {
	s := &l.rec.Spec
	return s.Lifetime == 0 && !s.FixedEnd && !l.runsSince.IsZero() && now.Sub(l.runsSince) >= defaultLifetime
}

// atFixedEnd reports whether the session's fixed end has come and it is to be paused or
// stopped for that before anything else begins inside. An idle session goes on when it is
// used. The caller holds mu.
func (l *lease) atFixedEnd(now time.Time) bool { return l.rec.Spec.FixedEnd && l.restsNow(now) }

// isDue is restsNow for who does not hold mu.
func (l *lease) isDue(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restsNow(now)
}

// isAtFixedEnd is atFixedEnd for a caller that does not hold mu.
func (l *lease) isAtFixedEnd(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.atFixedEnd(now)
}

// beginEnd reports whether the session's time is up and it is to be paused or
// stopped for that. If so, nothing begins inside and its end does not move until over is
// called. The caller holds the turn.
func (l *lease) beginEnd(now time.Time) (over func(), due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.restsNow(now) {
		return nil, false
	}
	l.ending, l.resting, l.restCause = true, true, cove.ReasonSessionExpired
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ending, l.resting = false, false
	}, true
}

// renew moves the session's end to a time from now on; 0 is its own. Without the
// turn it leaves one alone whose time is up, which may be paused, stopped or ended
// at this moment, and reports that.
func (l *lease) renew(d time.Duration, hasTurn bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, s := time.Now(), &l.rec
	up := l.ending || s.State != cove.Creating && (l.timeUp(now) || l.lifeOver(now))
	if up && !hasTurn {
		return false
	}
	if d == 0 {
		d = s.Spec.Idle
	}
	at := now.Add(d)
	if lasts(&s.Spec) && (s.State == cove.Paused || s.State == cove.Stopped) {
		at = later(at, s.ExpiresAt) // a short time to work in does not end what is kept
	}
	s.LastActivity, s.ExpiresAt = now, at
	return true
}

// restDue pauses or stops a session whose time is up, unless somebody changes it:
// that one is looked at again next time.
func (e *Engine) restDue(ctx context.Context, l *lease) (bool, error) {
	if !l.tryTurn() {
		return false, nil
	}
	defer l.giveTurn()
	return e.atEnd(ctx, l)
}

// atEnd does what a session's spec says of the end of its time, if that has come.
// One that can be neither paused nor stopped for as long as it would have been kept
// is ended. The caller holds the turn.
func (e *Engine) atEnd(ctx context.Context, l *lease) (done bool, err error) {
	now := time.Now()
	over, due := l.beginEnd(now)
	if !due {
		return false, nil
	}
	defer over()
	s := l.view()
	kind := "session.stopped"
	if s.Spec.OnEnd == cove.EndPause {
		kind = "session.paused"
		err = e.freeze(ctx, l, cove.ReasonSessionExpired)
	} else if err = e.dropTrial(ctx, l); err == nil {
		err = e.rest(ctx, l, cove.ReasonSessionExpired)
	}
	if err == nil {
		e.note(ctx, kind, s, cove.ReasonSessionExpired)
		return true, nil
	}
	if now.Before(s.ExpiresAt.Add(e.cfg.KeepPaused)) || !l.isDue(now) {
		return false, err
	}
	if err := e.end(ctx, l, cove.ReasonSessionExpired); err != nil {
		return false, err
	}
	e.note(ctx, "session.expired", s, cove.MessageOf(err))
	return true, nil
}

// dropTrial discards what is on trial in a session that is stopped because its
// time is up: an archive has one layer. The caller holds the turn.
func (e *Engine) dropTrial(ctx context.Context, l *lease) error {
	l.mu.Lock()
	tr := l.trial
	l.mu.Unlock()
	if tr == nil {
		return nil
	}
	l.endPrograms(ctx)
	return e.endTrial(ctx, l, tr, tr.layer.Discard)
}
