package fake

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// job is one started Command: its main process and all that came of it.
type job struct {
	m      *machine
	main   *proc
	cmd    cove.Command
	tty    *tty    // nil without a terminal
	in     *intake // nil without input
	out    output
	sink   atomic.Pointer[sink] // who gets the output; nil while nobody is there
	begun  time.Time
	over   chan struct{} // closed when the main process is gone: the caller's streams end
	done   chan struct{} // closed when result is set
	result cove.Result

	// The fields below are guarded by m.mu.
	timer *time.Timer  // of Limits.Wall
	cause cove.Outcome // why it was killed, if it was
	cpu   time.Duration
	mem   cove.Bytes
	peak  cove.Bytes
}

var _ cove.Process = (*job)(nil)

// run plays the main process to its end.
func (j *job) run(prog program, c *call) {
	j.main.exit(prog(c))
	<-j.main.buried // by whoever ended it
	// Nobody writes to the caller after this: what was written is delivered,
	// and children that live on get a broken pipe.
	j.out.shut()
	close(j.over)
	j.m.mu.Lock()
	if j.timer != nil {
		j.timer.Stop()
	}
	j.result = j.outcome()
	j.m.mu.Unlock()
	close(j.done)
}

// outcome says how the main process ended. Called with m.mu held.
func (j *job) outcome() cove.Result {
	r := cove.Result{
		Outcome: cove.Exited, ExitCode: j.main.status.shell(), Signal: j.main.status.sig,
		Wall: time.Since(j.begun), CPU: j.cpu, PeakMemory: j.peak,
	}
	switch {
	case j.cause == cove.TimedOut:
		r.Outcome, r.ExitCode = j.cause, -1
	case j.cause != "":
		r.Outcome = j.cause
	case r.Signal != "":
		r.Outcome = cove.Signaled
	}
	return r
}

// Wait implements [cove.Process].
func (j *job) Wait(ctx context.Context) (cove.Result, error) {
	select {
	case <-j.done:
		return j.result, nil
	default:
	}
	select {
	case <-j.done:
		return j.result, nil
	case <-ctx.Done():
		return cove.Result{}, ctx.Err()
	}
}

// Signal implements [cove.Process].
func (j *job) Signal(ctx context.Context, sig cove.Signal) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if sig.Number() == 0 {
		return cove.InvalidField("signal", "%.40q is unknown; use a name such as TERM", string(sig))
	}
	if j.main == nil || !j.m.signal(j.main, sig) {
		return errEnded()
	}
	return nil
}

// Kill implements [cove.Process].
func (j *job) Kill(context.Context) error {
	if j.main != nil {
		j.m.killJob(j, cove.Killed)
	}
	return nil
}

// Resize implements [cove.Process].
func (j *job) Resize(ctx context.Context, size cove.WindowSize) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case j.tty == nil:
		return cove.Errorf(cove.Unsupported, "the program has no terminal; start it with one to resize it")
	case size.Cols == 0 || size.Rows == 0:
		return cove.InvalidField("tty", "needs at least one column and one row")
	}
	j.tty.resize(size)
	if !j.m.signal(j.main, "WINCH") {
		return errEnded()
	}
	return nil
}

func errEnded() error {
	return cove.Errorf(cove.NotFound, "the program has ended")
}

// output hands what the processes of a job write to the caller's writers, one
// write at a time. The turn is a channel, not a mutex: a writer may block for
// long, and a process that waits for its turn can still be killed.
type output struct {
	turn    chan struct{} // holds one while somebody writes
	limit   cove.Bytes    // guarded by turn, as all below
	written cove.Bytes
	closed  bool
	failed  [2]bool // the caller's writer gave an error
	record  *record // nil unless the job is kept
}

func newOutput(cmd cove.Command) output {
	o := output{turn: make(chan struct{}, 1), limit: cmd.Limits.Output}
	if cmd.Keep != "" {
		o.record = &record{}
	}
	return o
}

// shut ends the output after the write that is under way.
func (o *output) shut() {
	o.turn <- struct{}{}
	o.closed = true
	<-o.turn
}

// outlet is one of the caller's streams.
type outlet struct {
	null

	j      *job
	stderr bool
}

func (o *outlet) write(p *proc, b []byte) (int, error) {
	select {
	case o.j.out.turn <- struct{}{}:
	case <-p.dead:
		return 0, errDead
	}
	if p.over() { // killed while it waited
		<-o.j.out.turn
		return 0, errDead
	}
	n, over, err := o.deliver(b)
	<-o.j.out.turn
	switch {
	case over:
		o.j.m.killJob(o.j, cove.OutputLimit)
		return n, errDead
	case err != nil:
		return n, p.brokenPipe()
	}
	return n, nil
}

// deliver writes what the limit allows. Called with the turn.
func (o *outlet) deliver(b []byte) (n int, over bool, err error) {
	out := &o.j.out
	stream := 0
	if o.stderr {
		stream = 1
	}
	if out.closed || out.failed[stream] {
		return 0, false, errDead
	}
	if most := out.limit; most > 0 && out.written+cove.Bytes(len(b)) > most {
		b, over = b[:max(most-out.written, 0)], true
	}
	out.written += cove.Bytes(len(b))
	to := o.j.sink.Load()
	w := to.writer(o.stderr)
	if out.record != nil {
		out.record.add(o.stderr, b)
	}
	if w == nil || len(b) == 0 {
		return len(b), over, nil
	}
	n, err = w.Write(b)
	if err != nil && out.record != nil {
		o.j.sink.CompareAndSwap(to, nil) // it is kept for the next one
		return len(b), over, nil
	}
	out.failed[stream] = err != nil
	return n, over, err
}
