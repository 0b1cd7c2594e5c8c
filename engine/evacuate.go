package engine

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// Cordon says whether this node takes new sessions.
func (e *Engine) Cordon(on bool) {
	e.cordoned.Store(on)
	if on {
		e.tasks.Kick(taskDrain)
	}
}

// taskDrain is the task that gives sessions away while the node is cordoned.
const taskDrain = "drain"

// drainInterval is how often a cordoned node looks for sessions that it can give
// away.
const drainInterval = 2 * time.Second

// cordonedOff refuses a new session where this node takes none. What no node could do
// is said first.
func (e *Engine) cordonedOff(ctx context.Context, s cove.Spec) error {
	if !e.cordoned.Load() {
		return nil
	}
	if _, err := e.choose(ctx, s); err != nil {
		return notMade(err)
	}
	return cove.Errorf(cove.Exhausted, "this node takes no new sessions").Reason(cove.ReasonCapacity).With("retry_after", 5).
		Remedy("ask another node, or let it take sessions again with cove node uncordon")
}

// evacuate gives away the sessions that can move, in which nothing happens. One that
// is busy is looked at again in the next run.
func (e *Engine) evacuate(ctx context.Context) (int64, error) {
	if !e.cordoned.Load() {
		return 0, nil
	}
	var n int64
	for _, l := range e.snapshotLeases() {
		if ctx.Err() != nil || !e.cordoned.Load() {
			return n, nil //nolint:nilerr // the task ends
		}
		gave, err := e.giveAway(ctx, l)
		if err != nil {
			e.cfg.Logger.WarnContext(ctx, "give a session away; the task tries again", errAttr(err), sessionAttr(l.id))
		}
		if gave {
			n++
		}
	}
	return n, nil
}

// moves reports whether the files of a stopped session are where every node finds
// them.
func (e *Engine) moves(s *cove.Session) bool {
	return e.cfg.Moving != nil && s.Spec.Workspace.Moves
}

// movesNow reports whether any node could start a session: it is stopped, and moves.
func (e *Engine) movesNow(s *cove.Session) bool { return s.State == cove.Stopped && e.moves(s) }

// giveAway stops a session that can move and makes it nobody's, unless it is in use.
func (e *Engine) giveAway(ctx context.Context, l *lease) (bool, error) {
	if s := l.view(); !e.moves(s) || s.Busy || !l.tryTurn() {
		return false, nil
	}
	defer l.giveTurn()
	s := l.view()
	if s.Busy || decided(s) != nil {
		return false, nil
	}
	switch s.State {
	case cove.Running, cove.Paused:
		if !l.beginRest(cove.ReasonDrained) {
			return false, nil
		}
		defer l.endRest()
		if err := e.restUnasked(ctx, l, cove.ReasonDrained); err != nil {
			return false, err
		}
	case cove.Stopped:
	case cove.Creating, cove.Failed, cove.Ended:
		return false, nil
	}
	return true, e.release(ctx, l)
}

// release makes a stopped session nobody's. The caller holds the turn; whoever waits
// for it is told to look elsewhere.
func (e *Engine) release(ctx context.Context, l *lease) error {
	if err := e.saveLast(ctx, l, func(s *cove.Session) { s.Node = "" }); err != nil {
		return err
	}
	s := l.view()
	l.change(func(s *cove.Session) { s.State, s.Cause = cove.Ended, cove.ReasonElsewhere })
	e.dropOutputs(l)
	e.forget(l)
	e.note(ctx, "session.released", s, "the node is being drained")
	return nil
}
