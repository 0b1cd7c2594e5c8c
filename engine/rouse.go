package engine

import (
	"context"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// rouse makes a session ready for an action inside it: one whose time is up is
// paused or stopped before anything else begins in it, and one that is and whose
// spec says so comes back. That is an action of the same caller, which policy
// decides on and the journal has.
func (v view) rouse(ctx context.Context, a action, l *lease) error {
	if a.Session == nil || !a.inside() {
		return nil
	}
	if spec := &a.Session.Spec; !spec.Wake && spec.OnEnd == cove.EndClose {
		return nil
	}
	if l.isDue(time.Now()) || l.isResting() {
		if err := l.takeTurn(ctx); err != nil {
			return err
		}
		_, err := v.e.atEnd(ctx, l)
		l.giveTurn()
		if err != nil {
			return err
		}
	}
	s := l.view()
	if !s.Spec.Wake {
		return nil
	}
	var err error
	switch s.State {
	case cove.Paused:
		_, err = snapshots{v}.Resume(ctx, l.id)
	case cove.Stopped:
		_, err = sessions{v}.Start(ctx, l.id)
	case cove.Creating, cove.Running, cove.Failed, cove.Ended:
	}
	return err
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

// setResting says whether the lease is being stopped or started.
func (l *lease) setResting(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resting = on
}

// isResting reports whether the lease is being stopped or started.
func (l *lease) isResting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resting
}
