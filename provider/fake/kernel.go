package fake

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Kernels opens interpreters of a tiny language in sandboxes of any provider.
// It implements [cove.Kernels]; the zero value is ready. A script is lines of
//
//	x = 6 * (3 + 4)     remembers a value
//	x + 1               is a result, if it is the last line
//	print(x, "text")    writes a line to standard output
//	warn("text")        writes a line to standard error
//	raise Name message  fails with an error
//	sleep 2             waits that many seconds
//	loop                goes on until it is interrupted
//	die                 ends the interpreter
//
// A name that nothing was given to is what the environment of the run has there.
// Every interpreter holds a process in its sandbox and dies with it.
type Kernels struct {
	// Names are the languages it answers to; nil means calc. They are all alike.
	Names []string
}

var _ cove.Kernels = Kernels{}

// Languages implements [cove.Kernels].
func (k Kernels) Languages() []string {
	if k.Names == nil {
		return []string{"calc"}
	}
	return slices.Clone(k.Names)
}

// Open implements [cove.Kernels].
func (k Kernels) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	if !slices.Contains(k.Languages(), spec.Language) {
		return nil, cove.InvalidField("language", "%.40q is unknown; use one of %s", spec.Language, strings.Join(k.Languages(), ", "))
	}
	p, err := in.Start(ctx, cove.Command{Argv: []string{"sleep", "infinity"}, Dir: spec.Dir})
	if err != nil {
		return nil, err
	}
	n := &kernel{proc: p, dead: make(chan struct{}), vars: map[string]value{}}
	go func() {
		defer close(n.dead)
		_, _ = p.Wait(context.WithoutCancel(ctx))
	}()
	return n, nil
}

// kernel is one interpreter.
type kernel struct {
	proc cove.Process
	dead chan struct{} // closed when its process has ended

	mu   sync.Mutex
	stop chan struct{} // closed to interrupt what runs; nil when nothing does

	vars  map[string]value // used by Run alone
	count int              // of runs; used by Run alone
}

// Adopt implements [cove.Kernel]. The tiny language has neither directories nor an
// environment.
func (k *kernel) Adopt(ctx context.Context, _ string, _ map[string]string) error {
	if !k.Alive() {
		return cove.Errorf(cove.Unavailable, "the interpreter has ended")
	}
	return ctx.Err()
}

// Alive implements [cove.Kernel].
func (k *kernel) Alive() bool {
	select {
	case <-k.dead:
		return false
	default:
		return true
	}
}

// Close implements [cove.Kernel].
func (k *kernel) Close(ctx context.Context) error {
	if err := k.proc.Kill(ctx); err != nil {
		return err
	}
	select {
	case <-k.dead:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Interrupt implements [cove.Kernel].
func (k *kernel) Interrupt(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop != nil {
		close(k.stop)
		k.stop = nil
	}
	return ctx.Err()
}

// Run implements [cove.Kernel]. Output goes to out alone; the streams of the
// result stay empty.
func (k *kernel) Run(ctx context.Context, run cove.KernelRun) (*cove.CodeResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !k.Alive() {
		return died(), nil
	}
	stop := make(chan struct{})
	k.mu.Lock()
	k.stop = stop
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.stop == stop {
			k.stop = nil
		}
	}()
	begun := time.Now()
	k.count++
	r := &calcRun{k: k, ctx: ctx, stop: stop, out: run.OnOutput, most: run.Limits.Output, env: run.Env}
	if run.Limits.Wall > 0 {
		timer := time.NewTimer(run.Limits.Wall)
		defer timer.Stop()
		r.late = timer.C
	}
	res, err := r.run(run.Code)
	if res != nil {
		res.Wall, res.Count = time.Since(begun), k.count
		if res.Main = len(res.Results); res.Main > 0 && run.OnResult != nil {
			run.OnResult(maps.Clone(res.Results[0]), true)
		}
	}
	return res, err
}

// died is the answer of an interpreter that is no more.
func died() *cove.CodeResult {
	return failure(cove.Signaled, "KernelDied", "the interpreter has ended; its variables are gone", 0)
}

func failure(outcome cove.Outcome, name, text string, line int) *cove.CodeResult {
	r := &cove.CodeResult{Error: &cove.CodeError{Name: name, Value: text}}
	if line > 0 {
		r.Error.Traceback = traceback(line, name, text)
	}
	r.Outcome, r.ExitCode = outcome, 1
	switch outcome { //nolint:exhaustive // the others keep exit code 1
	case cove.TimedOut:
		r.ExitCode = -1
	case cove.Signaled, cove.OutputLimit, cove.Killed:
		r.ExitCode, r.Signal = 137, "KILL"
	}
	return r
}
