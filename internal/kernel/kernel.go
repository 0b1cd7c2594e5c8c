package kernel

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk"
)

// kernel is one live interpreter.
type kernel struct {
	lang     *language
	in       cove.Starter
	proc     cove.Process
	x        *exchange
	box      *talk.Inbox
	programs *cove.Programs // it and what is started for it may execute
	group    int            // its process group inside; 0 where it is not known
	warm     bool           // it waits for Adopt
	said     []byte

	seq     uint32      // of the last run; used by Run alone
	running atomic.Bool // code is under way
	// interrupting is held while a signal is sent, and when a run begins.
	interrupting sync.Mutex
	shaken       atomic.Bool // an interrupt was sent since the last run began
	closed       atomic.Bool // we ended it

	kept *kept // nil where it ends with this process

	// dead is closed when the interpreter has ended and all it wrote was heard;
	// ended and failed are set before.
	dead   chan struct{}
	ended  cove.Result
	failed error
}

// Alive implements [cove.Kernel].
func (k *kernel) Alive() bool {
	select {
	case <-k.dead:
		return false
	default:
		return !k.closed.Load()
	}
}

// Close implements [cove.Kernel].
func (k *kernel) Close(ctx context.Context) error {
	k.closed.Store(true)
	return k.kill(ctx)
}

// kill ends the interpreter and waits for its end.
func (k *kernel) kill(ctx context.Context) error {
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

// Adopt implements [cove.Kernel].
func (k *kernel) Adopt(ctx context.Context, dir string, env map[string]string) error {
	if !k.warm {
		return cove.Errorf(cove.Conflict, "the interpreter belongs to a context already")
	}
	if dir == "" {
		dir = cove.WorkspacePath
	}
	if err := k.box.Send(ctx, adopt(dir, env)); err != nil {
		return err
	}
	select {
	case words := <-k.x.adopted:
		if len(words) == 1 && words[0] != "" {
			return cove.InvalidField("cwd", "the interpreter cannot go to %.200q: %s", dir, clean(words[0], maxSentence))
		}
		k.warm = false
		return nil
	case <-k.dead:
		return cove.Errorf(cove.Unavailable, "the interpreter has ended (%s)", how(k.ended))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run implements [cove.Kernel].
func (k *kernel) Run(ctx context.Context, what cove.KernelRun) (*cove.CodeResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := k.lang.takes(what); err != nil {
		return nil, err
	}
	if !k.Alive() {
		select {
		case <-k.dead:
			return k.deadBefore()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	k.seq++
	limits := what.Limits
	r := newRun(k.seq, what)
	at := k.x.begin(r)
	k.interrupting.Lock() // so that the signal to an earlier run does not come to this one
	k.running.Store(true)
	ask := request(askRun, r.seq, []byte(what.Code))
	if len(what.Env) > 0 {
		ask = append(lend(what.Env), ask...)
	}
	calm := k.shaken.Swap(false) && k.lang.passes
	k.interrupting.Unlock()
	defer k.running.Store(false)
	if calm {
		ask = append(request(askCalm, 0), ask...)
	}
	var late <-chan time.Time
	if limits.Wall > 0 {
		timer := time.NewTimer(limits.Wall)
		defer timer.Stop()
		late = timer.C
	}
	err := k.kept.begin(ctx, k, r, what, at, len(ask))
	if err == nil {
		err = k.box.Send(ctx, ask)
	}
	if err != nil && k.Alive() {
		k.x.end(r)
		k.seq-- // the driver has not heard of it
		if calm {
			k.shaken.Store(true)
		}
		return nil, err
	}
	return k.outcome(ctx, r, limits, late)
}

// outcome waits for the end of a run that the driver was asked for.
func (k *kernel) outcome(ctx context.Context, r *run, limits cove.Limits, late <-chan time.Time) (*cove.CodeResult, error) {
	select {
	case <-r.done:
		if r.flooded() { // the code ended before it could be stopped
			return r.stopped(flooded(limits.Output), true), nil
		}
		return r.result(), nil
	case <-k.dead:
		return k.death(r)
	case <-k.kept.over():
		return nil, leaving()
	case <-late:
		return k.stop(ctx, r, limits.Wall, overtime(limits.Wall))
	case <-r.flood:
		return k.stop(ctx, r, limits.Wall, flooded(limits.Output))
	case <-ctx.Done():
		if _, err := k.stop(ctx, r, 0, overtime(0)); err != nil {
			return nil, err
		}
		return nil, ctx.Err()
	}
}

// reason is why we stop code.
type reason struct {
	outcome cove.Outcome
	code    int
	name    string
	text    string
}

func overtime(wall time.Duration) reason {
	return reason{cove.TimedOut, -1, "TimeoutError", fmt.Sprintf("Code execution timed out after %s", wall)}
}

func flooded(limit cove.Bytes) reason {
	return reason{cove.OutputLimit, killedCode, "OutputLimit", fmt.Sprintf("the code wrote more than %s", limit)}
}

// stop ends code: by an interrupt, which keeps the variables, and where that does not
// help by the end of the interpreter.
func (k *kernel) stop(ctx context.Context, r *run, wall time.Duration, why reason) (*cove.CodeResult, error) {
	ctx = context.WithoutCancel(ctx)
	tries := 2
	if k.lang.passes {
		tries = 1
	}
	kept := false
	for range tries {
		k.awake(r)
		k.interrupt(ctx)
		if kept = k.await(r, grace(wall)/time.Duration(tries)); kept {
			break
		}
	}
	if !kept && k.kept.isLeft() && r.pause() != nil {
		return nil, leaving() // the next process stops it
	}
	if !kept {
		ctx, cancel := context.WithTimeout(ctx, killTime)
		defer cancel()
		if err := k.kill(ctx); err != nil {
			k.closed.Store(true) // it must not be used again
		}
	}
	k.x.end(r)
	return r.stopped(why, kept), nil
}

// await reports whether a run ends in time with its interpreter alive. Time in which the
// session is paused does not count.
func (k *kernel) await(r *run, d time.Duration) bool {
	for {
		timer := time.NewTimer(d)
		select {
		case <-r.done:
			timer.Stop()
			return true
		case <-k.dead:
			timer.Stop()
			return false
		case <-timer.C:
			if r.pause() == nil || !k.awake(r) {
				return false
			}
		}
	}
}

// awake waits while the session is paused: no code hears an interrupt then. It reports
// whether the session goes on, as far as this process has to do with that.
func (k *kernel) awake(r *run) bool {
	for {
		on := r.pause()
		if on == nil {
			return true
		}
		select {
		case <-on:
		case <-k.dead:
			return false
		case <-k.kept.over():
			return false
		}
	}
}

// Interrupt implements [cove.Kernel].
func (k *kernel) Interrupt(ctx context.Context) error {
	k.interrupting.Lock()
	defer k.interrupting.Unlock()
	if k.running.Load() && k.Alive() {
		k.interrupt(ctx)
	}
	return ctx.Err()
}

// interrupt sends the signal to the whole group of the interpreter, because it may
// wait for a program that it started, and then to itself alone: while it waits as C's
// system() does, it is deaf. Drivers take the two for one. One that passes signals on
// gets its own alone, for which a full sandbox has room.
func (k *kernel) interrupt(ctx context.Context) {
	k.shaken.Store(true)
	most, cancel := context.WithTimeout(ctx, interruptMax)
	defer cancel()
	if k.group > 1 && !k.lang.passes {
		p, err := k.in.Start(most, cove.Command{
			Argv: []string{"sh", "-c", `kill -s INT -- "-$0"`, strconv.Itoa(k.group)}, Dir: "/", Limits: cove.Limits{Wall: interruptMax}, Programs: k.programs,
		})
		if err == nil { // the signal below is for where this does not work
			if _, err = p.Wait(most); err != nil {
				k.retract(ctx, p)
			}
		}
	}
	_ = k.proc.Signal(most, "INT") // one that has ended needs none
}

// retract ends what was to send a signal and is late. While it is there it could send
// it to code that comes later, so an interpreter that it outlives is not used again.
func (k *kernel) retract(ctx context.Context, p cove.Process) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	err := p.Kill(ctx)
	if err == nil {
		_, err = p.Wait(ctx)
	}
	if err != nil {
		k.closed.Store(true)
		_ = k.proc.Kill(ctx) // what will not end goes with the sandbox
	}
}
