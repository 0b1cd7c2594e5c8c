package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

const (
	// trialTime is how long a layer may take to be committed or discarded. The
	// caller going away does not stop it half way.
	trialTime = 5 * time.Minute
	// maxChangeBytes bounds the names in an answer about a trial.
	maxChangeBytes = 4 << 20
)

// trials is the part of the platform that runs programs on trial in one session.
type trials struct {
	v  view
	id cove.ID
}

// onTrial is the open trial of a lease.
type onTrial struct {
	layer   cove.Trial
	running bool            // its Run is under way; guarded by the lease's mu
	saved   bool            // the record in the store tells of it; used with the turn
	last    *cove.Execution // what its program did; used with the turn
}

// Run implements [cove.Trials].
func (t trials) Run(ctx context.Context, req cove.TrialRequest) (*cove.TrialResult, error) {
	a := on(cove.TrialRun, t.id)
	a.Exec = &req.ExecRequest
	a.data = t.v.e.contentOf(textOf(req.ExecRequest, "\x00"))
	return actOrBlock(ctx, t.v, a, func(ctx context.Context, st *step) (*cove.TrialResult, error) {
		if err := req.Validate(); err != nil {
			return nil, err
		}
		if err := errors.Join(processes(t).ready(ctx, req.ExecRequest), inForeground(req.ExecRequest)); err != nil {
			return nil, err
		}
		if req.Limits.Wall == 0 {
			req.Limits.Wall = t.v.e.cfg.ExecTimeout
		}
		out, err := t.v.e.runOnTrial(ctx, st.lease, req, st.limits)
		if err == nil {
			st.ended(out.Execution.Result)
		}
		return out, err
	}, func(x *cove.Execution) *cove.TrialResult { return &cove.TrialResult{Execution: x} })
}

// runOnTrial takes a program from the layer it gets to what becomes of it.
func (e *Engine) runOnTrial(ctx context.Context, l *lease, req cove.TrialRequest, limits cove.Limits) (*cove.TrialResult, error) {
	tr, err := e.beginTrial(ctx, l)
	if err != nil {
		return nil, err
	}
	x, err := e.execOnTrial(ctx, l, req.ExecRequest, limits)
	turn, cancel := context.WithTimeout(context.WithoutCancel(ctx), trialTime)
	defer cancel()
	if late := l.takeTurn(turn); late != nil {
		l.stopRunning(tr)
		return nil, errors.Join(err, late)
	}
	defer l.giveTurn()
	l.stopRunning(tr)
	if s := l.view(); s.State == cove.Ended || s.State == cove.Failed || s.State == cove.Stopped {
		return nil, usable(s) // somebody closed it, its time was up, or it broke: its layer went along
	}
	if err != nil {
		if undo := e.endTrial(turn, l, tr, tr.layer.Discard); undo != nil {
			e.cfg.Logger.ErrorContext(ctx, "discard a trial that could not be run; it stays open", errAttr(undo), sessionAttr(l.id))
			return nil, errors.Join(err, e.saveTrial(turn, l, tr))
		}
		return nil, err
	}
	tr.last = x
	return e.concludeTrial(ctx, l, tr, req.Then)
}

// beginTrial puts a layer over the workspace of a lease in which nothing runs.
func (e *Engine) beginTrial(ctx context.Context, l *lease) (*onTrial, error) {
	if err := l.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer l.giveTurn()
	s := l.view()
	if err := usable(s); err != nil {
		return nil, err
	}
	if s.Trial == cove.TrialOpen {
		return nil, trialOpen()
	}
	trier, ok := cove.As[cove.Trier](l.box())
	if !ok {
		return nil, lacks(l, cove.PowerTrial)
	}
	if err := l.quiet("would not see the trial"); err != nil {
		return nil, err
	}
	layer, err := trier.Try(ctx)
	if err != nil {
		if cove.CodeOf(err) == cove.NotFound {
			e.broke(ctx, l)
			err = usable(l.view())
		}
		return nil, err
	}
	// A crash from here on leaves a layer that no record speaks of; recovery asks
	// for it in any case.
	tr := &onTrial{layer: layer, running: true, saved: s.Trial != ""}
	l.mu.Lock()
	l.trial, l.rec.Trial = tr, cove.TrialOpen
	l.mu.Unlock()
	return tr, nil
}

// execOnTrial runs the program to its end, and ends what it left behind.
func (e *Engine) execOnTrial(ctx context.Context, l *lease, req cove.ExecRequest, limits cove.Limits) (*cove.Execution, error) {
	sandbox, err := l.enter()
	if err != nil {
		return nil, err
	}
	defer l.leave()
	x, err := e.begin(ctx, l, sandbox, req, limits, nil)
	if err != nil {
		return nil, err
	}
	out, err := x.finish(ctx)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	if kill := x.proc.Kill(after); kill != nil && err == nil {
		return nil, kill
	}
	return out, err
}

// concludeTrial tells what a program changed and does what its caller wants
// done with it. The caller holds the turn.
func (e *Engine) concludeTrial(ctx context.Context, l *lease, tr *onTrial, then cove.TrialEnd) (*cove.TrialResult, error) {
	out, err := tr.report(ctx)
	if err != nil {
		return nil, errors.Join(err, e.saveTrial(context.WithoutCancel(ctx), l, tr))
	}
	x := tr.last
	switch {
	case then == cove.ThenKeep:
		out.Open = true
		return out, e.saveTrial(ctx, l, tr)
	case then == cove.ThenCommit, then == cove.ThenCommitOnSuccess && x.Outcome == cove.Exited && x.ExitCode == 0:
		out.Committed = true
		err = e.endTrial(ctx, l, tr, tr.layer.Commit)
	default:
		err = e.endTrial(ctx, l, tr, tr.layer.Discard)
	}
	if err != nil {
		return nil, errors.Join(err, e.saveTrial(context.WithoutCancel(ctx), l, tr))
	}
	return out, nil
}

// report reads what a trial has changed by now.
func (tr *onTrial) report(ctx context.Context) (*cove.TrialResult, error) {
	out := &cove.TrialResult{Execution: tr.last}
	bytes := 0
	for c, err := range tr.layer.Changes(ctx) {
		if err != nil {
			return nil, err
		}
		switch c.Kind { //nolint:exhaustive // a trial has no other changes
		case cove.Created:
			out.Created++
		case cove.Modified:
			out.Modified++
		case cove.Removed:
			out.Removed++
		}
		if c.Info != nil && c.Info.Mode.IsRegular() {
			out.Bytes += c.Info.Size
		}
		bytes += len(c.Path)
		if out.Truncated = out.Truncated || len(out.Changes) >= cove.MaxTrialChanges || bytes > maxChangeBytes; !out.Truncated {
			out.Changes = append(out.Changes, c)
		}
	}
	return out, nil
}

// Get implements [cove.Trials].
func (t trials) Get(ctx context.Context) (*cove.TrialResult, error) {
	return act(ctx, t.v, on(cove.TrialGet, t.id), func(ctx context.Context, st *step) (*cove.TrialResult, error) {
		return withTrial(ctx, st, func(tr *onTrial) (*cove.TrialResult, error) {
			out, err := tr.report(ctx)
			if err == nil {
				out.Open = true
			}
			return out, err
		})
	})
}

// withTrial does something with the open trial of a session, when it is our turn.
func withTrial[T any](ctx context.Context, st *step, do func(*onTrial) (T, error)) (none T, err error) {
	if err := st.lease.takeTurn(ctx); err != nil {
		return none, err
	}
	defer st.lease.giveTurn()
	tr, err := st.lease.openTrial()
	if err != nil {
		return none, err
	}
	return do(tr)
}

// Before implements [cove.Trials].
func (t trials) Before(ctx context.Context, name string) ([]byte, error) {
	a := on(cove.TrialBefore, t.id)
	a.Path = name
	return act(ctx, t.v, a, func(ctx context.Context, st *step) ([]byte, error) {
		clean, err := cove.CleanPath(name)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(clean, cove.WorkspacePath+"/") {
			return nil, cove.InvalidField("path", "%.200q is not in the workspace, and only its files are on trial", clean)
		}
		content, err := withTrial(ctx, st, func(tr *onTrial) ([]byte, error) { return tr.layer.Before(ctx, clean) })
		t.v.e.tenants.add(st.lease.tenant, cove.Consumption{Down: cove.Bytes(len(content))})
		return content, err
	})
}

// Commit implements [cove.Trials].
func (t trials) Commit(ctx context.Context) error {
	return t.end(ctx, cove.TrialCommit, func(tr *onTrial) func(context.Context) error { return tr.layer.Commit })
}

// Discard implements [cove.Trials]. A lost trial is as good as discarded.
func (t trials) Discard(ctx context.Context) error {
	return t.end(ctx, cove.TrialDiscard, func(tr *onTrial) func(context.Context) error { return tr.layer.Discard })
}

func (t trials) end(ctx context.Context, verb cove.Verb, how func(*onTrial) func(context.Context) error) error {
	return actDone(ctx, t.v, on(verb, t.id), func(ctx context.Context, st *step) error {
		l := st.lease
		if err := l.takeTurn(ctx); err != nil {
			return err
		}
		defer l.giveTurn()
		tr, err := l.openTrial()
		if verb == cove.TrialDiscard && cove.ReasonOf(err) == cove.ReasonTrialLost {
			l.change(func(s *cove.Session) { s.Trial = "" })
			return t.v.e.save(ctx, l)
		}
		if err != nil {
			return err
		}
		if err := usable(l.view()); err != nil {
			return err
		}
		if l.isRunning(tr) {
			return cove.Errorf(cove.Conflict, "the program on trial still runs").Remedy("try again when it has ended")
		}
		if err := l.quiet("uses the trial"); err != nil {
			return err
		}
		return t.v.e.endTrial(ctx, l, tr, how(tr))
	})
}

// endTrial commits or discards a trial and forgets it. On error it goes on. The
// caller holds the turn.
func (e *Engine) endTrial(ctx context.Context, l *lease, tr *onTrial, how func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trialTime)
	defer cancel()
	if err := how(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.trial, l.rec.Trial = nil, ""
	l.mu.Unlock()
	if !tr.saved {
		return nil
	}
	return e.save(ctx, l)
}

// saveTrial puts an open trial into the record. One that has ended is left out.
func (e *Engine) saveTrial(ctx context.Context, l *lease, tr *onTrial) error {
	if tr.saved || l.view().Trial != cove.TrialOpen {
		return nil
	}
	tr.saved = true
	return e.save(ctx, l)
}

// openTrial returns the trial of a lease that has a sandbox. The caller holds
// the turn.
func (l *lease) openTrial() (*onTrial, error) {
	s := l.view()
	if s.State != cove.Paused && s.State != cove.Stopped {
		if err := usable(s); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	tr := l.trial
	l.mu.Unlock()
	switch {
	case tr != nil:
		return tr, nil
	case s.Trial == cove.TrialLost:
		return nil, cove.Errorf(cove.NotFound, "the trial was lost when the server restarted: its layer is gone").
			Reason(cove.ReasonTrialLost).Remedy("look at the files of the session, then discard the trial or run it again")
	}
	return nil, cove.Errorf(cove.NotFound, "the session has no open trial").Remedy("run a program on trial first")
}

func (l *lease) stopRunning(tr *onTrial) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tr.running = false
}

func (l *lease) isRunning(tr *onTrial) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return tr.running
}

// quiet reports, as Conflict with their names, the programs under way.
func (l *lease) quiet(why string) error {
	names := l.underWay()
	if len(names) == 0 {
		return nil
	}
	return cove.Errorf(cove.Conflict, "something runs in the session that %s: %s", why, strings.Join(names[:min(len(names), 5)], ", ")).
		With("programs", names).Remedy("end it first, or wait for its end")
}

// underWay names all that runs in a session.
func (l *lease) underWay() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for pid, pr := range l.procs {
		if !pr.isOver() {
			names = append(names, fmt.Sprintf("process %d (%.40s)", pid, pr.info.Command))
		}
	}
	if n := len(l.running) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("%d in the foreground", n))
	}
	for name, s := range l.contexts {
		if s.kernel != nil && s.kernel.Alive() {
			names = append(names, fmt.Sprintf("context %.64q", name))
		}
	}
	slices.Sort(names)
	return names
}

// trialOpen is the answer for what cannot be done while changes are on trial.
func trialOpen() error {
	return cove.Errorf(cove.Conflict, "changes to the files of the session are on trial").
		Reason(cove.ReasonTrialOpen).Remedy("commit or discard them first")
}

// decided reports a session whose files are on trial, and so are no state to save.
func decided(s *cove.Session) error {
	if s.Trial == cove.TrialOpen {
		return trialOpen()
	}
	return nil
}

// takeBack gives a lease from an earlier life the trial that was open. One whose
// layer is gone is marked as lost. NotFound means that the sandbox cannot say,
// so that nobody knows what its files are.
func (e *Engine) takeBack(ctx context.Context, l *lease, sandbox cove.Sandbox) error {
	keeper, ok := cove.As[cove.TrialKeeper](sandbox)
	if !ok {
		if l.rec.Trial == cove.TrialOpen {
			return cove.Errorf(cove.NotFound, "changes were on trial, which provider %s cannot give back", l.rec.Provider)
		}
		return nil
	}
	layer, err := keeper.Tried(ctx)
	switch {
	case err == nil:
		l.trial, l.rec.Trial = &onTrial{layer: layer, saved: true}, cove.TrialOpen
	case cove.CodeOf(err) != cove.NotFound:
		return err
	case l.rec.Trial == cove.TrialOpen:
		l.rec.Trial = cove.TrialLost
		e.note(ctx, "trial.lost", l.view(), "its layer is gone since the server restarted")
	}
	return nil
}
