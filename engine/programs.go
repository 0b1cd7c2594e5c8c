package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

// track remembers a running program so that it can be ended with the sandbox.
func (l *lease) track(p cove.Process) (untrack func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nextWait
	l.nextWait++
	l.running[n] = p
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.running, n)
	}
}

// endPrograms kills what runs, closes the interpreters and ends the streams.
func (l *lease) endPrograms(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	l.mu.Lock()
	running := slices.Collect(maps.Values(l.running))
	watchers := slices.Collect(maps.Values(l.watchers))
	procs := slices.Collect(maps.Values(l.procs))
	slots := slices.Collect(maps.Values(l.contexts))
	clear(l.contexts)
	l.mu.Unlock()
	for _, stop := range watchers {
		stop()
	}
	for _, s := range slots {
		s.close(ctx)
	}
	for _, p := range running {
		_ = p.Kill(ctx) // destroying the sandbox ends what is left
	}
	for _, pr := range procs {
		select {
		case <-pr.ended:
		case <-ctx.Done():
			return
		}
	}
}

// broke marks a session whose sandbox is gone behind our back, so that its
// next caller is told.
func (e *Engine) broke(ctx context.Context, l *lease) {
	l.mu.Lock()
	was := l.rec.State
	var ticket *admission.Ticket
	if was == cove.Running {
		l.rec.State, l.rec.Cause = cove.Failed, cove.ReasonNodeLost
		ticket, l.ticket = l.ticket, nil
	}
	l.mu.Unlock()
	ticket.Leave()
	if was != cove.Running {
		return
	}
	e.probes.doubt(l.provider())
	if err := e.save(context.WithoutCancel(ctx), l); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "save a broken session", errAttr(err), sessionAttr(l.id))
	}
	e.note(ctx, "session.lost", l.view(), "its sandbox is gone")
}

// letGo ends what this process waits for in the session, and leaves the
// sandbox as it is.
func (l *lease) letGo(ctx context.Context) {
	l.endPrograms(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sandbox = nil
}

// shell is the program that runs lines in the session's sandbox.
func (l *lease) shell() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runsLines
}

// mounts are where the session has volumes.
func (l *lease) mounts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var targets []string
	for _, v := range l.rec.Spec.Volumes {
		targets = append(targets, v.Target)
	}
	return targets
}

func (l *lease) provider() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rec.Provider
}
