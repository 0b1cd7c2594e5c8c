package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// run runs all packages of c into a report. A test that fails is no error.
func (c command) run(ctx context.Context, r *report, events, stderr io.Writer) error {
	dir, err := os.MkdirTemp("", "testrun-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	graph := filepath.Join(dir, "actions.json")
	if err := c.goTest(ctx, r, append(c.profile, "-debug-actiongraph="+graph), c.packages, events, stderr); err != nil {
		return err
	}
	return r.builds.add(graph)
}

// goTest runs go test and reads its events. The report learns of failures from the
// events; what go test itself exits with is added only where they show none.
func (c command) goTest(ctx context.Context, r *report, extra, packages []string, events, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", c.args(extra, packages)...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stderr = stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failures := r.failures()
	readErr := r.read(io.TeeReader(pipe, events))
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		if ctx.Err() == nil && r.failures() == failures {
			r.broken = append(r.broken, fmt.Sprintf("go test: %v, and its events show no failure", exit))
		}
		err = nil
	}
	return errors.Join(ctx.Err(), readErr, err)
}
