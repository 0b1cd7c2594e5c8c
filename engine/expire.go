package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// expire ends the sessions whose time is up, or whose sandbox has died, and the
// clean rooms and places that nobody uses. Sessions that are to be paused or stopped
// instead are handed on, and those of earlier runs are counted when they rest.
func (e *Engine) expire(ctx context.Context) (int64, error) {
	e.coolOff(ctx, time.Now())
	var over []*lease
	for _, l := range e.snapshotLeases() {
		_, ends := l.over(time.Now())
		switch {
		case ends:
			over = append(over, l)
		case l.isDue(time.Now()):
			e.rests.add(l)
		default:
			e.alarmFor(l)
		}
	}
	var ended atomic.Int64
	failed := inParallel(over, func(l *lease) error {
		if ctx.Err() != nil { // the task ends
			return nil //nolint:nilerr // the next run ends it
		}
		done, err := e.expireOne(ctx, l)
		if done {
			ended.Add(1)
		}
		e.alarmAgain(l, err)
		return err
	})
	unowned, err := e.expireUnowned(ctx)
	failed = errors.Join(failed, err)
	rested, err := e.rests.report()
	n := ended.Load() + unowned + rested + e.endPlaces(ctx, time.Now().Add(-placeIdle))
	return n + e.endRooms(ctx, time.Now().Add(-roomIdle)), errors.Join(failed, err)
}

// expireUnowned ends the sessions that are nobody's and whose time is up. All nodes look
// for them, and whoever is first has one.
func (e *Engine) expireUnowned(ctx context.Context) (n int64, err error) {
	if !e.shared() {
		return 0, nil
	}
	for s, err := range e.cfg.Directory.Unowned(ctx) {
		if err != nil {
			return n, err
		}
		if time.Now().Before(s.ExpiresAt) {
			continue
		}
		l, err := e.adoptStopped(ctx, s.ID)
		switch cove.CodeOf(err) { //nolint:exhaustive // the others say that nobody knows
		case cove.NotFound, cove.Conflict: // somebody was faster, or this node takes nothing
			continue
		}
		if err != nil {
			return n, err
		}
		ended, err := e.expireOne(ctx, l)
		if err != nil {
			return n, err
		}
		if ended {
			n++
		}
	}
	return n, nil
}

// endDead ends the sessions whose sandboxes died, for the room that they take. It
// reports whether there were any.
func (e *Engine) endDead(ctx context.Context) bool {
	found := false
	for _, l := range e.snapshotLeases() {
		if cause, over := l.over(time.Now()); !over || cause == cove.ReasonSessionExpired {
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
	why := cause
	if cause == cove.ReasonKernelMemory {
		why = cove.MessageOf(deathOf(l.box()))
	}
	if err := e.end(ctx, l, cause); err != nil {
		return false, err
	}
	e.note(ctx, noteOfEnd(cause), s, why)
	return true, nil
}

// noteOfEnd is what the journal calls the end of a session for a cause.
func noteOfEnd(cause string) string {
	switch cause {
	case cove.ReasonNodeLost:
		return "session.lost"
	case cove.ReasonKernelMemory:
		return "session.overrun"
	}
	return "session.expired"
}

// tidyRecords forgets sessions and runs that ended long ago and old messages, and
// writes what tenants consumed.
func (e *Engine) tidyRecords(ctx context.Context) (int64, error) {
	e.bookAll("")
	failed := e.tenants.flush(ctx)
	if e.shared() {
		failed = errors.Join(failed, e.tenants.reload(ctx, ""), e.endRunsLeft(ctx)) // what other nodes booked, and left
	}
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
	gone, err := e.tidyData(ctx)
	return n + gone, errors.Join(failed, err)
}

// tidyData forgets runs and messages.
func (e *Engine) tidyData(ctx context.Context) (int64, error) {
	now := time.Now()
	runs, err := e.cfg.Store.TrimRuns(ctx, now.Add(-e.cfg.KeepRuns), e.cfg.MaxRuns)
	if err != nil {
		return 0, err
	}
	said, err := e.cfg.Store.TrimMessages(ctx, now.Add(-e.cfg.KeepChats))
	return runs + said, err
}
