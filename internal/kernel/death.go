package kernel

import (
	"context"
	"fmt"
	"time"

	"github.com/cove-sandbox/cove"
)

// died is the name of the error of an interpreter that is no more.
const died = "KernelDied"

// watch waits for the end of the interpreter, and takes along what it left behind.
func (k *kernel) watch(ctx context.Context) {
	k.ended, k.failed = k.proc.Wait(ctx)
	k.box.Close()
	if k.kept.isLeft() {
		close(k.dead)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	_ = k.proc.Kill(ctx) // what cannot be killed goes with the sandbox
	k.kept.forget(ctx, k.in)
	close(k.dead)
}

// how says in words how a program ended.
func how(r cove.Result) string {
	switch {
	case r.Outcome == cove.OutOfMemory:
		return "it ran out of memory"
	case r.Signal != "":
		return "signal " + string(r.Signal)
	}
	return fmt.Sprintf("exit code %d", r.ExitCode)
}

// death is the answer about code whose interpreter ended under it.
func (k *kernel) death(r *run) (*cove.CodeResult, error) {
	if k.kept.isLeft() {
		return nil, leaving()
	}
	last := k.x.end(r)
	if k.failed != nil && !k.closed.Load() {
		return nil, k.failed
	}
	out := r.result()
	out.Outcome, out.ExitCode, out.Signal = k.ended.Outcome, k.ended.ExitCode, k.ended.Signal
	const gone = "its variables are gone, and the next call starts a fresh one"
	var text string
	switch {
	case k.closed.Load():
		out.Outcome, out.ExitCode, out.Signal = cove.Killed, killedCode, "KILL"
		text = "the interpreter was ended by a restart or the end of its context; its variables are gone"
	case r.flooded():
		why := flooded(cove.Bytes(r.limit))
		out.Outcome, out.ExitCode, out.Signal = why.outcome, why.code, ""
		out.Error = &cove.CodeError{Name: why.name, Value: why.text + ", and the interpreter ended (" + how(k.ended) + "); " + gone}
		return out, nil
	case r.raised != nil && r.finished:
		return out, nil // it said itself how it came to its end
	case last != "":
		text = "the interpreter ended itself: " + last + "; " + gone
	case k.ended.Outcome == cove.Killed:
		text = "the interpreter was ended with the sandbox it ran in; its variables are gone"
	case k.ended.Outcome == cove.OutOfMemory:
		text = "the interpreter ran out of memory and was ended; " + gone
	case k.ended.Signal == "SEGV" || k.ended.Signal == "ABRT" || k.ended.Signal == "BUS":
		text = "the interpreter crashed (" + how(k.ended) + "), as by endless recursion or a fault in an extension; " + gone
	default:
		text = "the interpreter ended by itself (" + how(k.ended) + "); " + gone
	}
	out.Error = &cove.CodeError{Name: died, Value: text}
	return out, nil
}

const killedCode = 137

// deadBefore is the answer of an interpreter that ended before the code came.
func (k *kernel) deadBefore() (*cove.CodeResult, error) {
	if k.failed != nil && !k.closed.Load() {
		return nil, k.failed
	}
	out := &cove.CodeResult{Error: &cove.CodeError{
		Name: died, Value: "the interpreter had ended before (" + how(k.ended) + "); nothing was run, and the next call starts a fresh one",
	}}
	out.Outcome, out.ExitCode, out.Signal, out.Wall = cove.Signaled, killedCode, "KILL", time.Nanosecond
	return out, nil
}

// abandon ends an interpreter that nobody gets.
func (k *kernel) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	_ = k.Close(ctx) // what will not end goes with the sandbox
}
