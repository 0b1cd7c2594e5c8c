package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/keeper"
	"github.com/cove-sandbox/cove/internal/measure"
)

// restartOptions says how restarts are measured.
type restartOptions struct {
	cove     string // the executable
	env      []string
	provider string
	sessions int
	rounds   int
	patience time.Duration // for a server to answer, and to end
}

// restartRow kills a server with live sessions and one without any, and compares
// how long they take to come back: the one until all its sessions run a program,
// the other until it answers.
func restartRow(ctx context.Context, o restartOptions) (_ row, err error) {
	dir, err := os.MkdirTemp("", "cove-bench-")
	if err != nil {
		return row{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	empty, full := newHome(o, filepath.Join(dir, "empty")), newHome(o, filepath.Join(dir, "full"))
	defer func() { err = errors.Join(err, empty.end(ctx), full.end(ctx)) }()
	for _, h := range []*home{empty, full} {
		if err := h.start(ctx); err != nil {
			return row{}, err
		}
	}
	for range o.sessions {
		s, err := full.client.Sessions().Open(ctx, cove.OpenRequest{})
		if err != nil {
			return row{}, err
		}
		full.sessions = append(full.sessions, s.ID)
	}
	times, err := measure.Race(ctx, o.rounds, empty.restart(), full.restart())
	if err != nil {
		return row{}, err
	}
	return row{
		name: fmt.Sprintf("restart after kill -9 with %d live sessions, until each has run `true` − an empty restart", o.sessions), measured: taken(times[1]), baseline: taken(times[0]),
		value: minus(times[1], times[0]).Seconds(), unit: " s", must: 1,
	}, nil
}

// home is a COVE_HOME, and the server of it if one runs.
type home struct {
	restartOptions

	dir      string
	sessions []cove.ID
	cmd      *exec.Cmd     // nil if no server runs
	done     chan struct{} // closed when it has ended
	client   *client.Client
}

func newHome(o restartOptions, dir string) *home { return &home{restartOptions: o, dir: dir} }

// restart is the contender that kills the server and starts it again.
func (h *home) restart() measure.Contender {
	return measure.Contender{
		Name:   fmt.Sprintf("restart with %d sessions", len(h.sessions)),
		Before: func(context.Context) error { h.stop(syscall.SIGKILL); return nil },
		Run: func(ctx context.Context) error {
			if err := h.start(ctx); err != nil {
				return err
			}
			return h.each(func(id cove.ID) error {
				r, err := h.client.Processes(id).Exec(ctx, cove.ExecRequest{Argv: []string{"true"}})
				if err == nil && (r.Outcome != cove.Exited || r.ExitCode != 0) {
					err = fmt.Errorf("true %s with exit code %d in a session that was there before", r.Outcome, r.ExitCode)
				}
				return err
			})
		},
	}
}

// each does something with all sessions at once.
func (h *home) each(do func(id cove.ID) error) error {
	errs := make([]error, len(h.sessions))
	var all sync.WaitGroup
	for i, id := range h.sessions {
		all.Go(func() { errs[i] = do(id) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// start starts the server and waits until it answers.
func (h *home) start(ctx context.Context) error {
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return err
	}
	said, err := os.Create(filepath.Join(h.dir, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = said.Close() }()
	// It ends when we say so and not with ctx: its sessions would live on.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), h.cove, "serve", "--addr", "127.0.0.1:0") //nolint:gosec // the executable that is measured
	cmd.Env = append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "COVE_HOME=" + h.dir, "SANDBOX_PROVIDER=" + h.provider, "COVE_LOG_LEVEL=error",
		"POOL_SIZE=0", "MSB_MAX_TOTAL_MEMORY_MB=67108864", // no prepared sandboxes, and room for all sessions
	}, h.env...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return err
	}
	h.cmd, h.done = cmd, make(chan struct{})
	go func(done chan<- struct{}) {
		defer close(done)
		_ = cmd.Wait() // it ends by a signal
	}(h.done)
	if h.client, err = client.New("unix://"+filepath.Join(h.dir, "cove.sock"), ""); err != nil {
		return err
	}
	if err := h.answers(ctx); err != nil {
		return fmt.Errorf("cove serve does not answer: %w: %.500s", err, h.said())
	}
	return nil
}

// answers waits until the server does.
func (h *home) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := h.client.Admin().Stats(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-h.done:
			return errors.New("it has ended")
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// said is what the server wrote.
func (h *home) said() []byte {
	text, _ := os.ReadFile(filepath.Join(h.dir, "log")) // an error that is told already says more
	return text
}

// stop ends the server with a signal. One that does not end is killed.
func (h *home) stop(sig syscall.Signal) {
	if h.cmd == nil {
		return
	}
	_ = h.client.Close() // it always works
	_ = h.cmd.Process.Signal(sig)
	late := time.AfterFunc(h.patience, func() { _ = h.cmd.Process.Kill() })
	defer late.Stop()
	<-h.done
	h.cmd = nil
}

// end closes all sessions and ends the server, and what would outlive it.
func (h *home) end(ctx context.Context) (err error) {
	ctx = context.WithoutCancel(ctx)
	if h.cmd == nil && len(h.sessions) > 0 {
		err = h.start(ctx)
	}
	if err == nil && h.cmd != nil {
		err = h.each(func(id cove.ID) error {
			_, err := h.client.Sessions().Close(ctx, id, false)
			return err
		})
	}
	h.stop(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	place := filepath.Join(h.dir, "providers", h.provider)
	// It ends by itself when it holds nothing; sessions that could not be closed go with it.
	if gone := keeper.Evict(ctx, place); gone != nil && !errors.Is(gone, keeper.ErrNone) && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, fmt.Errorf("the keeper of %s: %w", place, gone))
	}
	return err
}
