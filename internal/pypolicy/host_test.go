package pypolicy_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/analyze"
	"github.com/cove-sandbox/cove/internal/pypolicy/fact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reader returns what reads code on this host.
func reader(t *testing.T) func(code string) *fact.Report {
	t.Helper()
	if _, err := os.Stat(python); err != nil {
		if os.Getenv("COVE_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no " + python)
	}
	h, a := &host{}, analyze.New()
	t.Cleanup(func() {
		for _, p := range h.procs {
			_ = p.Kill(t.Context())
			<-p.done
		}
	})
	return func(code string) *fact.Report {
		t.Helper()
		r, err := a.Facts(t.Context(), h, code)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

const python = "/usr/bin/python3"

// host is a place without a sandbox around it.
type host struct{ procs []*process }

func (h *host) Start(_ context.Context, cmd cove.Command) (cove.Process, error) {
	c := exec.Command(python, cmd.Argv[1:]...)
	c.Dir, c.Stdout, c.Stderr = cmd.Dir, cmd.Stdout, cmd.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(in, cmd.Stdin)
		_ = in.Close()
	}()
	p := &process{cmd: c, done: make(chan struct{})}
	h.procs = append(h.procs, p)
	go func() {
		_ = c.Wait()
		close(p.done)
	}()
	return p, nil
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *process) Wait(ctx context.Context) (cove.Result, error) {
	select {
	case <-p.done:
		return cove.Result{Outcome: cove.Exited}, nil
	case <-ctx.Done():
		return cove.Result{}, ctx.Err()
	}
}

func (p *process) Signal(context.Context, cove.Signal) error     { return nil }
func (p *process) Kill(context.Context) error                    { return p.cmd.Process.Kill() }
func (p *process) Resize(context.Context, cove.WindowSize) error { return nil }
