package gvisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove/provider/gvisor/warden"
)

// cli drives a runtime by starting its executable for each call. It works with
// every runsc.
type cli struct {
	path     string // of the executable
	platform string // how it catches system calls
	dir      string // where it keeps what it knows of sandboxes
	patience time.Duration
}

var _ runtime = (*cli)(nil)

// flags are those of every call. The control groups are ours, and so is what
// leads out; the runtime gives neither.
func (c *cli) flags(log string) []string {
	return []string{
		"--root=" + c.dir, "--log=" + log, "--log-format=json",
		"--platform=" + c.platform, "--network=none", "--overlay2=none", "--host-uds=none", "--ignore-cgroups",
		// What goes on from an image has users of its own, which gVisor would refuse as
		// another configuration: see [order.resembles].
		"--restore-spec-validation=ignore",
	}
}

// A runtime that takes longer than this for one call does not answer any more.
const callPatience = time.Minute

// command prepares a call. It is named as the runtime expects itself to be
// named, and has nothing of our environment.
func (c *cli) command(ctx context.Context, log string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.path, append(c.flags(log), args...)...) //nolint:gosec // the operator named it, or it is our own
	cmd.Args[0] = "runsc"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// call runs a call to its end.
func (c *cli) call(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	said := &saying{}
	cmd := c.command(ctx, os.DevNull, args...)
	cmd.Stdout, cmd.Stderr = said, said
	return c.failed(ctx, args[0], cmd.Run(), said.text())
}

// failed is what a call that did not work ended with.
func (*cli) failed(ctx context.Context, verb string, err error, said string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("runsc %s: no answer: %w", verb, ctx.Err())
	case ctx.Err() != nil:
		return ctx.Err()
	case said == "":
		return fmt.Errorf("runsc %s: %w", verb, err)
	}
	return fmt.Errorf("runsc %s: %s: %w", verb, said, err)
}

// create implements [runtime]. What the call has as its streams the sandbox has for
// as long as it lives, so that these are nothing, and the call speaks through a
// file.
func (c *cli) create(ctx context.Context, id string, b birth) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	var args []string
	if b.still {
		args = append(args, "--file-access-mounts=exclusive")
	}
	verb := "run"
	if b.image != "" {
		verb = "restore"
	}
	args = append(args, verb, "--detach", "--bundle", b.bundle)
	if b.image != "" {
		args = append(args, "--image-path", b.image)
	}
	log := filepath.Join(b.bundle, "log")
	cmd := c.command(ctx, log, append(args, id)...)
	nothing, err := null()
	if err != nil {
		return err
	}
	defer func() { _ = nothing.Close() }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = b.holder, nothing, nothing
	if err = startIn(b.group, cmd); err == nil {
		err = cmd.Wait()
	}
	if err = c.failed(ctx, verb, err, lastWords(log)); err != nil {
		return errors.Join(err, c.remove(context.WithoutCancel(ctx), id))
	}
	return nil
}

// enter implements [runtime]. The call only waits for the program to end, so it
// is ended as soon as the program has begun: [entered.settle].
func (c *cli) enter(ctx context.Context, id string, e entry) (*entered, error) {
	args := []string{"exec", "--user", "0:0", "--cwd", "/"}
	if e.mount {
		args = append(args, "--cap", "CAP_SYS_ADMIN")
	}
	// Nobody waits for the call, so no context may end it but by what is closed.
	cmd := c.command(context.WithoutCancel(ctx), os.DevNull, append(append(args, id), e.argv...)...)
	s, err := newStreams()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.out, s.errs
	err = cmd.Start()
	s.closeTheirs()
	if err != nil {
		s.closeOurs()
		_ = s.fromErrs.Close()
		return nil, fmt.Errorf("runsc exec: %w", err)
	}
	return s.entered(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}), nil
}

// pause implements [runtime].
func (c *cli) pause(ctx context.Context, id string) error { return c.call(ctx, "pause", id) }

// resume implements [runtime].
func (c *cli) resume(ctx context.Context, id string) error { return c.call(ctx, "resume", id) }

// checkpoint implements [runtime].
func (c *cli) checkpoint(ctx context.Context, id, image string) error {
	return c.call(ctx, "checkpoint", "--leave-running", "--compression", "none", "--image-path", image, id)
}

// remove implements [runtime].
func (c *cli) remove(ctx context.Context, id string) error {
	return c.call(ctx, "delete", "--force", id)
}

// close implements [runtime].
func (*cli) close() error { return nil }

// lastWords is the last complaint in a log of the runtime.
func lastWords(log string) string {
	f, err := os.Open(log) //nolint:gosec // in a directory of ours
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return ""
	}
	last := ""
	for line := range strings.Lines(string(text)) {
		var entry struct {
			Msg   string `json:"msg"`
			Level string `json:"level"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Level == "error" {
			last = entry.Msg
		}
	}
	return warden.Brief(last)
}
