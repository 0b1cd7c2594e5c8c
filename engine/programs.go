package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

// track remembers a running program so that it can be ended with the sandbox.
func (l *lease) track(x *execution) (untrack func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nextWait
	l.nextWait++
	l.running[n] = x
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.running, n)
	}
}

// endPrograms kills what runs, closes the interpreters and ends the streams.
func (l *lease) endPrograms(ctx context.Context) {
	l.quit(ctx, func(context.Context, *execution) bool { return false }, func(ctx context.Context, s *slot) { _ = s.close(ctx, l) })
}

// quit ends what this process does in the session: programs are killed, unless
// spare takes care of them, and interpreters are handed to part.
func (l *lease) quit(ctx context.Context, spare func(context.Context, *execution) bool, part func(context.Context, *slot)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	l.mu.Lock()
	running := slices.Collect(maps.Values(l.running))
	watchers := slices.Collect(maps.Values(l.watchers))
	procs := slices.Collect(maps.Values(l.procs))
	slots := slices.Collect(maps.Values(l.contexts))
	clear(l.contexts)
	l.mu.Unlock()
	l.dropListings()
	for _, stop := range watchers {
		stop()
	}
	for _, s := range slots {
		part(ctx, s) // an interpreter that will not close goes with its sandbox
	}
	l.cool(ctx)
	for _, x := range running {
		if !spare(ctx, x) {
			_ = x.proc.Kill(ctx) // destroying the sandbox ends what is left
		}
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
	death := deathOf(l.sandbox)
	was := l.rec.State
	var ticket *admission.Ticket
	if was == cove.Running {
		l.rec.State, l.rec.Cause = cove.Failed, cove.ReasonOf(death)
		ticket, l.ticket = l.ticket, nil
	}
	l.mu.Unlock()
	ticket.Leave()
	if was != cove.Running {
		return
	}
	e.bookLast(l)
	e.probes.doubt(l.provider())
	if err := e.save(context.WithoutCancel(ctx), l); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "save a broken session", errAttr(err), sessionAttr(l.id))
	}
	e.note(ctx, noteOfEnd(cove.ReasonOf(death)), l.view(), cove.MessageOf(death))
}

// letGo ends what this process waits for in the session, and leaves the
// sandbox as it is, with the programs that outlive this process.
func (l *lease) letGo(ctx context.Context) {
	l.mu.Lock()
	procs := slices.Collect(maps.Values(l.procs))
	l.mu.Unlock()
	for _, pr := range procs {
		if pr.in != nil && pr.x.keep != "" {
			pr.in.letGo(ctx)
		}
	}
	l.quit(ctx, func(_ context.Context, x *execution) bool {
		if x.keep != "" {
			x.letGo()
		}
		return x.keep != ""
	}, func(ctx context.Context, s *slot) { s.letGo(ctx, l) })
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

func (l *lease) workspace() cove.WorkspaceKind {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rec.Spec.Workspace.Kind
}

func (l *lease) provider() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rec.Provider
}

// cost estimates what a run of so long costs, where the sandbox has a price.
func (l *lease) cost(wall time.Duration) *cove.Cost {
	l.mu.Lock()
	sandbox := l.sandbox
	l.mu.Unlock()
	if c, ok := cove.As[cove.Charger](sandbox); ok {
		return c.Cost(wall)
	}
	return nil
}

func (l *lease) template() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rec.Spec.Template
}
