// Package talktest plays a sandbox with this host's own programs, for tests of what
// speaks to a program over its standard streams. It holds nothing back, so it must not
// be given code that nobody has read, and only tests may import it.
package talktest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// Host is a [cove.Starter] that starts programs of this host, in a directory of the
// test. It ends them with the test. Whoever wants other programs or variables puts a
// Start of his own before this one.
type Host struct {
	Dir string // where programs start that are told no directory, and their HOME

	mu    sync.Mutex
	procs []*process // guarded by mu
}

// New returns a host for a test.
func New(t testing.TB) *Host {
	t.Helper()
	h := &Host{Dir: t.TempDir()}
	t.Cleanup(h.End)
	return h
}

// End ends all programs.
func (h *Host) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.procs {
		_ = p.Kill(context.Background()) // which has no error
		<-p.done
	}
}

// Started is how many programs were started.
func (h *Host) Started() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.procs)
}

// Start implements [cove.Starter].
func (h *Host) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), cmd.Argv[0], cmd.Argv[1:]...) //nolint:gosec // what a test asks for
	c.Dir = cmd.Dir
	if c.Dir == "" {
		c.Dir = h.Dir
	}
	c.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + h.Dir, "TMPDIR=" + h.Dir}
	for k, v := range cmd.Env {
		c.Env = append(c.Env, k+"="+v) // the last one of a name counts
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Kill ends what it started, too
	p := &process{cmd: c, done: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := p.start(cmd); err != nil {
		return nil, err
	}
	h.procs = append(h.procs, p)
	return p, nil
}

// process is a program on this host.
type process struct {
	cmd    *exec.Cmd
	copies sync.WaitGroup
	done   chan struct{}
	result cove.Result

	mu     sync.Mutex
	killed bool // guarded by mu
}

func (p *process) start(cmd cove.Command) error {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	if cmd.Stdin != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		theirs, p.cmd.Stdin = append(theirs, r), r
		go func() {
			defer func() { _ = w.Close() }()
			_, _ = io.Copy(w, cmd.Stdin)
		}()
	}
	var outs []*os.File
	for _, o := range []struct {
		to  io.Writer
		set func(*os.File)
	}{{cmd.Stdout, func(f *os.File) { p.cmd.Stdout = f }}, {cmd.Stderr, func(f *os.File) { p.cmd.Stderr = f }}} {
		if o.to == nil {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		theirs, outs = append(theirs, w), append(outs, r)
		o.set(w)
		p.copies.Go(func() {
			defer func() { _ = r.Close() }()
			_, _ = io.Copy(struct{ io.Writer }{o.to}, struct{ io.Reader }{r})
		})
	}
	if err := p.cmd.Start(); err != nil {
		p.result = cove.Result{Outcome: cove.Exited, ExitCode: 127} // as a sandbox has it
		close(p.done)
		return nil
	}
	go p.wait(outs)
	return nil
}

func (p *process) wait(outs []*os.File) {
	defer close(p.done)
	err := p.cmd.Wait()
	for _, f := range outs { // what is in the pipes is read, and what children write later is not
		_ = f.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	}
	p.copies.Wait()
	p.result = cove.Result{Outcome: cove.Exited, Wall: time.Second}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		p.result.ExitCode = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			p.result.Outcome, p.result.ExitCode = cove.Signaled, 128+int(ws.Signal())
			p.result.Signal = map[syscall.Signal]cove.Signal{syscall.SIGKILL: "KILL", syscall.SIGSEGV: "SEGV", syscall.SIGTERM: "TERM", syscall.SIGABRT: "ABRT"}[ws.Signal()]
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		p.result.Outcome = cove.Killed
	}
}

// Wait implements [cove.Process].
func (p *process) Wait(ctx context.Context) (cove.Result, error) {
	select {
	case <-p.done:
		return p.result, nil
	case <-ctx.Done():
		return cove.Result{}, ctx.Err()
	}
}

// Signal implements [cove.Process].
func (p *process) Signal(_ context.Context, sig cove.Signal) error {
	select {
	case <-p.done:
		return cove.Errorf(cove.NotFound, "it has ended")
	default:
		return p.cmd.Process.Signal(syscall.Signal(sig.Number()))
	}
}

// Kill implements [cove.Process].
func (p *process) Kill(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done: // its number may be another's by now
	default:
		p.killed = true
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	return nil
}

// Resize implements [cove.Process].
func (p *process) Resize(context.Context, cove.WindowSize) error {
	return cove.Errorf(cove.Unsupported, "no terminal")
}
