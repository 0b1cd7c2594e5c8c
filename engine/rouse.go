package engine

import (
	"context"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// mostRouses bounds how often one action starts a session that is stopped again before
// the action begins.
const mostRouses = 4

// rouse makes a session ready for an action inside it, and keeps it so until leave is
// called: it is neither idle nor evicted meanwhile. A session that the server stopped or
// paused by itself is started or resumed; so is one with Wake, as an action of the same
// caller. Another one is left to the action, which is refused.
func (v view) rouse(ctx context.Context, a action, l *lease) (leave func(), err error) {
	leave = func() {}
	if a.Session == nil || !a.inside() {
		return leave, nil
	}
	for range mostRouses {
		ready, waits := l.hold(time.Now())
		if ready {
			return l.leave, nil
		}
		if !waits {
			break
		}
		if err := v.bringBack(ctx, l); err != nil {
			return leave, err
		}
	}
	return leave, nil
}

// hold marks a lease that runs as busy. Where it could not, waits reports whether it
// may be ready once what changes it is over, or it is brought back.
func (l *lease) hold(now time.Time) (ready, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.resting: // a caller that stops it does not want it back
		after := cove.Session{State: cove.Stopped, Cause: l.restCause, Spec: l.rec.Spec}
		return false, after.AutoResumes()
	case l.atFixedEnd(now):
		return false, true
	case l.rec.State == cove.Running:
		l.busy++
		l.touch(now)
		return true, false
	}
	return false, l.rec.AutoResumes()
}

// bringBack waits until nothing else changes a session, and starts or resumes it where
// that is due.
func (v view) bringBack(ctx context.Context, l *lease) error {
	if err := l.takeTurnUnlessQueued(ctx); err != nil {
		return err
	}
	asked, err := v.e.comeBack(ctx, l)
	l.giveTurn()
	if err != nil || !asked {
		return err
	}
	switch l.view().State {
	case cove.Paused:
		_, err = snapshots{v}.Resume(ctx, l.id)
	case cove.Stopped:
		_, err = sessions{v}.Start(ctx, l.id)
	case cove.Creating, cove.Running, cove.Failed, cove.Ended:
	}
	return err
}

// queueLook is how often a caller that waits for a session looks whether another one waits
// for room for it.
const queueLook = time.Second

// takeTurnUnlessQueued is takeTurn for a caller that does not wait for room: where the turn
// is held by one that does, it is told so.
func (l *lease) takeTurnUnlessQueued(ctx context.Context) error {
	for {
		if l.isQueued() {
			return waitsForRoom().Remedy("try again later")
		}
		short, cancel := context.WithTimeout(ctx, queueLook)
		err := l.takeTurn(short)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// comeBack pauses or stops a session whose fixed end has come, and starts or resumes one
// that the server stopped or paused by itself: no caller asked for that, so no caller
// needs a scope to undo it. It reports whether a caller must ask for the rest. The caller
// holds the turn.
func (e *Engine) comeBack(ctx context.Context, l *lease) (asked bool, err error) {
	if l.isAtFixedEnd(time.Now()) {
		if _, err := e.atEnd(ctx, l); err != nil {
			return false, err
		}
	}
	s := l.view()
	switch {
	case !s.AutoResumes():
		return false, nil
	case !s.ByServer():
		return true, nil
	case s.State == cove.Paused:
		err = e.thaw(ctx, l)
	default:
		err = e.wake(ctx, l, cove.RejectWhenFull, nil)
	}
	if err == nil {
		e.note(ctx, "session.resumed", s, s.Cause)
	}
	return false, err
}

// inside reports whether an action does something in a session's sandbox, as
// opposed to looking up what the engine knows of it.
func (a action) inside() bool {
	switch a.Verb { //nolint:exhaustive // all others are told by their part
	case cove.ProcessList, cove.ProcessWait, cove.ProcessOutput, cove.ContextList, cove.TrialGet, cove.TrialBefore:
		return false
	}
	part, _, _ := strings.Cut(string(a.Verb), ".")
	switch part {
	case "process", "file", "context", "port", "trial":
		return a.on
	}
	return false
}

// contextsOf describes the contexts of a lease.
func (l *lease) contextsOf() []cove.CodeContext {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []cove.CodeContext
	for _, s := range l.contexts {
		list = append(list, s.info)
	}
	return list
}

// reopen puts contexts into a lease under the names that callers know, without
// interpreters: the next code in one starts a fresh one.
func (l *lease) reopen(list []cove.CodeContext) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, info := range list {
		l.contexts[info.Name] = newSlot(info)
	}
}

// setResting says that the lease is being stopped for a cause, or started, until endRest.
func (l *lease) setResting(cause string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resting, l.restCause = true, cause
}

// endRest says that the lease is not being stopped or started any more.
func (l *lease) endRest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resting = false
}
