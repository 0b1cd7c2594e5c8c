package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

// killTime is how long a killed program may take to be gone.
const killTime = 15 * time.Second

// blockedExit is what a shell says of a program that it may not run.
const blockedExit = 126

// errOutputLimit ends a program that wrote more than it may.
var errOutputLimit = errors.New("output limit")

// execution is one run of a program, foreground or background.
type execution struct {
	e       *Engine
	l       *lease
	id      cove.OutputID
	log     *spool.Log
	proc    cove.Process
	over    context.CancelCauseFunc
	limited context.Context //nolint:containedctx // ends when the output limit is passed: a signal, not a call's context
	flooded atomic.Bool
	untrack func()
	follow  bool   // callers may follow the output after the end
	keep    string // the name under which it outlives this process, or ""
	counted bool   // its CPU time was booked by an earlier server
	resumed bool   // an earlier server started it: what it wrote then comes again
}

// begin starts a program within the request's limits and those of the decision.
// The caller has entered the lease. A background program has a note.
func (e *Engine) begin(ctx context.Context, l *lease, sandbox cove.Sandbox, req cove.ExecRequest, limits cove.Limits, note *keepNote) (*execution, error) {
	x := &execution{e: e, l: l}
	x.limited, x.over = context.WithCancelCause(context.Background())
	limits = req.Limits.Tighten(limits)
	x.id, x.log = e.newLog(l, limits, req.OnOutput, x.flood)
	cmd := cove.Command{
		Argv: req.Argv, Dir: req.Dir, Env: req.Env, Stdin: req.Stdin, TTY: req.TTY, Limits: limits,
		Stdout: x.log.Writer(cove.Stdout), Stderr: x.log.Writer(cove.Stderr), Programs: e.cfg.programs(l.view().Spec, &req),
	}
	if req.Line != "" {
		cmd.Argv = []string{l.shell(), "-c", req.Line}
		if cmd.Argv[0] != "bash" && l.view().Spec.Policy != "" {
			// The policy read the line as bash; another shell may read it otherwise.
			x.over(nil)
			return nil, cove.Errorf(cove.Unsupported, "the sandbox has no bash, so a command policy cannot judge its lines").
				Remedy("send the command as a list of words, or open the session without a policy")
		}
	}
	if note != nil {
		note.Output, note.Limits = x.id, limits
		x.follow = true
	}
	err := note.keep(e, sandbox, &cmd)
	if err != nil {
		x.over(nil)
		return nil, err
	}
	x.keep = cmd.Keep
	if x.keep != "" {
		if err := e.planDisk(ctx, l.tenant, keptItem(l.id, x.keep), e.cfg.OutputKept); err != nil {
			x.over(nil)
			return nil, err
		}
	}
	proc, err := sandbox.Start(ctx, cmd)
	if err != nil {
		x.over(nil)
		e.freeDisk(keptItem(l.id, x.keep))
		if cove.CodeOf(err) == cove.NotFound {
			e.broke(ctx, l)
			err = usable(l.view())
		}
		return nil, errors.Join(err, x.log.Remove())
	}
	x.proc = proc
	x.untrack = l.track(x)
	e.tenants.count(l.tenant, tally{execs: 1})
	return x, nil
}

func (x *execution) flood() {
	x.flooded.Store(true)
	x.over(errOutputLimit)
}

// finish waits for the program's end. When ctx ends first, the program is
// killed and the error is the context's.
func (x *execution) finish(ctx context.Context) (*cove.Execution, error) {
	defer x.untrack()
	defer x.over(nil)
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(x.limited, func() { stop(context.Cause(x.limited)) })()
	res, err := x.proc.Wait(waiting)
	switch {
	case err != nil && errors.Is(context.Cause(waiting), errLetGo):
		return nil, errors.Join(runsOn(), x.log.Remove())
	case err != nil && waiting.Err() != nil:
		res, err = x.kill(ctx)
	}
	x.log.Close()
	if x.flooded.Load() {
		res.Outcome = cove.OutputLimit
	}
	if err != nil {
		return nil, errors.Join(midway(err), x.log.Remove())
	}
	if !x.counted {
		x.e.spend(x.l, res.CPU)
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, errors.Join(cause, x.log.Remove())
	}
	return x.answer(res)
}

// midway is the error of what ran while its sandbox was lost. That the session is
// not there would say that nothing ran, and have callers run it again elsewhere.
func midway(err error) error {
	if cove.CodeOf(err) == cove.NotFound && cove.ReasonOf(err) == cove.ReasonKernelMemory {
		return cove.Wrap(cove.Conflict, err, "%s", cove.MessageOf(err)).Reason(cove.ReasonKernelMemory).Remedy("open a new session, and have the program hold fewer of them")
	}
	if cove.CodeOf(err) != cove.NotFound || cove.ReasonOf(err) != cove.ReasonNodeLost {
		return err
	}
	return cove.Wrap(cove.Conflict, err, "the sandbox was lost while this ran, and nobody knows how far it got").
		Reason(cove.ReasonNodeLost).Remedy("close the session and open a new one, and look before you run it again")
}

// kill ends the program and waits for its result.
func (x *execution) kill(ctx context.Context) (cove.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	if err := x.proc.Kill(ctx); err != nil {
		return cove.Result{}, err
	}
	return x.proc.Wait(ctx)
}

// answer cuts the output to the budget and keeps the rest under a handle.
func (x *execution) answer(res cove.Result) (*cove.Execution, error) {
	out := &cove.Execution{Result: res, Provider: x.l.provider(), Session: x.l.id, Cost: x.l.cost(res.Wall)}
	if x.follow { // the process has the log until it is forgotten
		summarize(x.id, x.log, out)
		return out, nil
	}
	x.e.settle(x.l, x.id, x.log, out)
	return out, nil
}

// blocked is the answer for a program that policy did not let start.
func (v view) blocked(a action, d cove.Decision) *cove.Execution {
	provider := ""
	if l, err := v.e.find(v.p.Tenant, a.id); err == nil {
		provider = l.provider()
	}
	r := d.Refusal
	if r == nil {
		r = &cove.Refusal{Rule: "policy", Reason: "policy does not allow this"}
	}
	text := fmt.Sprintf("cove: blocked by rule %q: %s", r.Rule, r.Reason)
	if r.Line > 0 {
		text += fmt.Sprintf(" (line %d, column %d)", r.Line, r.Column)
	}
	text += "\n"
	return &cove.Execution{
		Result:   cove.Result{Outcome: cove.Blocked, ExitCode: blockedExit},
		Stderr:   cove.Output{Data: []byte(text), Bytes: int64(len(text)), Lines: 1},
		Refusal:  r,
		Provider: provider,
		Session:  a.id,
	}
}

// textOf is the command as one text.
func textOf(req cove.ExecRequest, between string) string {
	if req.Line != "" {
		return req.Line
	}
	return strings.Join(req.Argv, between)
}

// withInput returns a reader of first and then of more.
func withInput(first io.Reader, more *input) io.Reader {
	if first == nil {
		return more
	}
	return io.MultiReader(patient{first}, more)
}
