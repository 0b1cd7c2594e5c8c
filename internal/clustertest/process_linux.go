package clustertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a program that runs.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended, after done
}

// launch starts a program in a space, with its output at the end of a file.
func launch(s *space, log string, env []string, name string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the program has its own
	cmd := exec.Command(name, args...) //nolint:noctx // it ends by signals, which are what this is about
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	if err := s.start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) } // it may have ended

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop ends it with a signal, and by force where that takes too long.
func (p *process) stop(sig syscall.Signal, patience time.Duration) {
	p.signal(sig)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// pause waits, and reports whether nothing ended the wait.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// until asks again and again for a while, and returns what was wrong last.
func until(ctx context.Context, patience time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}
