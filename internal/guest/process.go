//go:build linux

package guest

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// killPatience bounds a kill that nobody waits for.
const killPatience = 30 * time.Second

// process is a program of the sandbox, seen from the host.
type process struct {
	// poke tells who is inside to do something to the program.
	poke      func(ctx context.Context, kind protocol.Kind, to protocol.Poke) error
	left      func() bool // this host has left all that is kept to the next one
	holder    Holder      // of what is kept; nil where nothing is
	relayed   bool        // its streams are copied on their way
	guarded   bool        // the agent has the end of the input to which we write, too
	starved   func() bool // as Options.OutOfMemory
	id        uint64
	keep      string // its name with the holder, if it has one
	held      bool   // the holder has its streams
	tty       bool
	started   time.Time
	stdin     *os.File
	outs      []*output
	recording *recording    // nil where its output is not recorded by this process
	input     io.Reader     // the caller's
	pending   atomic.Int32  // outputs that are not delivered, the end, and the start
	over      chan struct{} // closed when the program has ended
	done      chan struct{} // closed when all of it has been delivered, too
	timer     *time.Timer
	unread    context.CancelFunc // ends the reading from the holder; nil if nothing is read from it

	mu      sync.Mutex
	budget  int64 // of output
	limited bool
	why     cove.Outcome // we ended it, and this is why
	flowing bool         // the streams are being copied
	ended   bool
	exit    protocol.Exited
	wall    time.Duration

	// Set before done is closed.
	result cove.Result
	err    error
}

var _ cove.Process = (*process)(nil)

// Wait implements [cove.Process].
func (p *process) Wait(ctx context.Context) (cove.Result, error) {
	select {
	case <-p.done:
		return p.result, p.err
	default:
	}
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return cove.Result{}, ctx.Err()
	}
}

// Signal implements [cove.Process].
func (p *process) Signal(ctx context.Context, sig cove.Signal) error {
	n := sig.Number()
	if n == 0 {
		return cove.InvalidField("signal", "%.40q is unknown; use a name such as TERM", string(sig))
	}
	if p.isOver() {
		return cove.Errorf(cove.NotFound, "the program has ended")
	}
	return p.poke(ctx, protocol.KindSignal, protocol.Poke{Program: p.id, Signal: uint8(n)}) //nolint:gosec // signals are small
}

// Resize implements [cove.Process].
func (p *process) Resize(ctx context.Context, size cove.WindowSize) error {
	switch {
	case !p.tty:
		return cove.Errorf(cove.Unsupported, "the program has no terminal; start it with one")
	case size.Cols == 0 || size.Rows == 0:
		return cove.InvalidField("tty", "a terminal of %d columns and %d rows cannot be", size.Cols, size.Rows)
	case p.isOver():
		return cove.Errorf(cove.NotFound, "the program has ended")
	}
	return p.poke(ctx, protocol.KindResize, protocol.Poke{Program: p.id, Cols: size.Cols, Rows: size.Rows})
}

// Kill implements [cove.Process].
func (p *process) Kill(ctx context.Context) error {
	if p.id == 0 {
		return nil // it never ran
	}
	p.blame(cove.Killed)
	err := p.poke(ctx, protocol.KindKill, protocol.Poke{Program: p.id})
	if cove.CodeOf(err) == cove.NotFound || p.keep == "" && p.left() {
		return nil // the whole sandbox is gone, or all that is not kept
	}
	return err
}

// flows reports whether it was started: somebody has it.
func (p *process) flows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flowing
}

func (p *process) isOver() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// blame notes why the program is about to be ended; the first reason stays.
func (p *process) blame(why cove.Outcome) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.why != "" {
		return false
	}
	p.why = why
	return true
}

// end kills the tree of the program for a reason of ours, without waiting.
func (p *process) end(why cove.Outcome) {
	if p.blame(why) {
		p.forsake()
	}
}

// forsake kills what nobody waits for any more.
func (p *process) forsake() {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), killPatience)
		defer cancel()
		// An agent that cannot kill is gone, or will be when the sandbox ends.
		_ = p.poke(ctx, protocol.KindKill, protocol.Poke{Program: p.id})
		if p.keep != "" && !p.flows() {
			_ = p.poke(ctx, protocol.KindForget, protocol.Poke{Program: p.id})
		}
	}()
}

func (p *process) watchdog(wall time.Duration, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.timer = time.AfterFunc(max(wall-time.Since(since), 0), func() { p.end(cove.TimedOut) })
	}
}

// exited takes the news of the end. It does not wait.
func (p *process) exited(x protocol.Exited) {
	p.settle(func() { p.exit = x })
}

// lost is the end of a program whose agent is gone.
func (p *process) lost(err error, closed bool) {
	p.settle(func() {
		if closed {
			p.why, p.exit = cove.Killed, protocol.Exited{Status: killStatus}
			return
		}
		p.err = err
	})
}

// settle notes the end once, and makes the streams end.
func (p *process) settle(note func()) {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return
	}
	p.ended = true
	p.wall = time.Since(p.started)
	note()
	if p.timer != nil {
		p.timer.Stop()
	}
	flowing := p.flowing
	p.mu.Unlock()
	close(p.over)
	if flowing {
		p.hurry()
	}
	p.release()
}

// release is called by each output when it is delivered, and by the end.
func (p *process) release() {
	if p.pending.Add(-1) > 0 {
		return
	}
	if p.starved != nil && syscall.WaitStatus(p.exit.Status).Signal() == syscall.SIGKILL {
		// Whoever is asked for the reason may want to ask the agent, and must not do so
		// in the place of who hears its answers.
		go p.report()
		return
	}
	p.report()
}

func (p *process) report() {
	p.result = p.conclude()
	if p.recording != nil {
		p.recording.close()
	}
	close(p.done)
}
