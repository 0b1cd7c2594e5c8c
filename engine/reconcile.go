package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cove-sandbox/cove"
)

// Reconcile makes the table and the directory agree again, after this node lost its
// lease or the directory what it knew: sessions of this node's are put back, those
// that others gave up or hold are let go, and records of which the table knows
// nothing are ended. It returns how many sessions were lost.
func (e *Engine) Reconcile(ctx context.Context) (lost int, err error) {
	leases := e.snapshotLeases()
	given := make([]bool, len(leases))
	places := make(map[*lease]int, len(leases))
	for i, l := range leases {
		places[l] = i
	}
	failed := inParallel(leases, func(l *lease) error {
		err := e.restoreRecord(ctx, l)
		switch cove.CodeOf(err) { //nolint:exhaustive // the others say that nobody knows
		case cove.NotFound, cove.Conflict:
			given[places[l]] = true
			e.letLoose(ctx, l, "session.lost", "other nodes gave it up while this one was cut off")
			return nil
		}
		return err
	})
	for _, g := range given {
		if g {
			lost++
		}
	}
	return lost, errors.Join(failed, e.endStrays(ctx))
}

// restoreRecord puts the record of a lease into the directory as it is here.
func (e *Engine) restoreRecord(ctx context.Context, l *lease) error {
	l.saved.Lock()
	defer l.saved.Unlock()
	return e.restoreSaved(ctx, l)
}

// restoreSaved is restoreRecord for who holds saved.
func (e *Engine) restoreSaved(ctx context.Context, l *lease) error {
	l.mu.Lock()
	rec := l.rec
	rec.Spec = rec.Spec.Clone()
	l.mu.Unlock()
	if rec.State == cove.Ended || rec.State == cove.Creating && rec.Version == 0 {
		return nil // it is on its way out, or not in the directory yet
	}
	err := e.cfg.Directory.Restore(ctx, &rec)
	if other, held := heldElsewhere(err); held && other != l.id {
		// The directory lost this one, and another was opened for the same user and thread.
		// Neither was given up: this one goes on under its id.
		e.cfg.Logger.WarnContext(ctx, "another session has the user and thread of this one by now: it goes on without them, under its id", sessionAttr(l.id))
		e.unname(l)
		rec.Spec.User, rec.Spec.Thread = "", ""
		err = e.cfg.Directory.Restore(ctx, &rec)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Version, l.doubt = rec.Version, false
	return nil
}

// letLoose ends a lease that is not this node's any more. There is nothing to write
// down: the directory knows.
func (e *Engine) letLoose(ctx context.Context, l *lease, kind, why string) {
	var was *cove.Session
	l.change(func(s *cove.Session) {
		copied := *s
		was = &copied
		s.State, s.Cause, s.EndedAt = cove.Ended, cove.ReasonNodeLost, time.Now()
	})
	e.cfg.Logger.WarnContext(ctx, "session let go", sessionAttr(l.id), slog.String("reason", why))
	e.dismantle(ctx, l, was.State == cove.Paused)
	if was.Archived && !e.moves(was) { // that would be whoever's that has the session now
		e.removeArchive(ctx, was)
	}
	e.note(ctx, kind, was, why)
	e.forget(l)
	e.tellSessionEnd(ctx, l)
}

// endStrays ends records of this node's that the table does not have: what made them
// was cut off from the directory before it could take them back.
func (e *Engine) endStrays(ctx context.Context) error {
	var strays []*cove.Session
	for s, err := range e.cfg.Store.Sessions(ctx, cove.SessionFilter{Node: e.cfg.Node}) {
		if err != nil {
			return err
		}
		if !e.Holds(s.ID) {
			strays = append(strays, s)
		}
	}
	var failed error
	for _, s := range strays {
		if e.Holds(s.ID) {
			continue
		}
		if s.State == cove.Creating {
			failed = errors.Join(failed, e.abort(ctx, s))
			continue
		}
		if e.movesNow(s) { // it was being taken up, and has its files
			_, err := e.adoptStopped(ctx, s.ID)
			failed = errors.Join(failed, err)
			continue
		}
		s.State, s.Cause, s.EndedAt = cove.Ended, cove.ReasonNodeLost, time.Now()
		if err := e.cfg.Store.PutSession(ctx, s); err != nil && cove.CodeOf(err) != cove.Conflict {
			failed = errors.Join(failed, err)
			continue
		}
		e.note(ctx, "session.lost", s, "this node does not have it")
	}
	return failed
}
