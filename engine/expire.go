package engine

import (
	"context"
	"errors"
	"time"

	"github.com/cove-sandbox/cove"
)

// expire ends the sessions whose time is up, or whose sandbox has died.
func (e *Engine) expire(ctx context.Context) (int64, error) {
	var n int64
	var failed error
	for _, l := range e.snapshotLeases() {
		if ctx.Err() != nil {
			break
		}
		if _, over := l.over(time.Now()); !over {
			continue
		}
		ended, err := e.expireOne(ctx, l)
		failed = errors.Join(failed, err)
		if ended {
			n++
		}
	}
	return n, failed
}

// endDead ends the sessions whose sandboxes died, for the room that they take. It
// reports whether there were any.
func (e *Engine) endDead(ctx context.Context) bool {
	found := false
	for _, l := range e.snapshotLeases() {
		if cause, over := l.over(time.Now()); !over || cause != cove.ReasonNodeLost {
			continue
		}
		ended, err := e.expireOne(ctx, l)
		if err != nil {
			e.cfg.Logger.ErrorContext(ctx, "end a dead session; the task tries again", errAttr(err), sessionAttr(l.id))
		}
		found = found || ended
	}
	return found
}

// expireOne ends a session unless somebody uses or changes it: what somebody
// changes is looked at again next time.
func (e *Engine) expireOne(ctx context.Context, l *lease) (bool, error) {
	if !l.tryTurn() {
		return false, nil
	}
	defer l.giveTurn()
	s := l.view()
	cause, over := l.over(time.Now())
	if s.State == cove.Ended || !over {
		return false, nil
	}
	if err := e.end(ctx, l, cause); err != nil {
		return false, err
	}
	kind := "session.expired"
	if cause == cove.ReasonNodeLost {
		kind = "session.lost"
	}
	e.note(ctx, kind, s, cause)
	return true, nil
}

// tidyRecords forgets sessions that ended long ago and writes what tenants
// consumed.
func (e *Engine) tidyRecords(ctx context.Context) (int64, error) {
	e.bookAll("")
	failed := e.tenants.flush(ctx)
	var n int64
	before := time.Now().Add(-e.cfg.KeepEnded)
	for s, err := range e.cfg.Store.Sessions(ctx, cove.SessionFilter{State: cove.Ended}) {
		if err != nil {
			return n, errors.Join(failed, err)
		}
		if s.EndedAt.After(before) {
			continue
		}
		if err := e.cfg.Store.DeleteSession(ctx, s.ID); err != nil {
			return n, errors.Join(failed, err)
		}
		n++
	}
	return n, failed
}
