//go:build linux

package main

import (
	"errors"
	"io"
	"os"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/pkg/sentry/control"
	"gvisor.dev/gvisor/pkg/sentry/kernel/auth"
	"gvisor.dev/gvisor/pkg/state/statefile"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/container"
	"gvisor.dev/gvisor/runsc/flag"
	"gvisor.dev/gvisor/runsc/sandbox"

	"github.com/cove-sandbox/cove/provider/gvisor/warden"
)

// guard is a warden until nobody speaks to it any more, and returns the exit code
// of the process.
func guard(flags []string) int {
	// gVisor writes about every call, and what matters is in the errors.
	log.SetTarget(log.GoogleEmitter{Writer: &log.Writer{Next: io.Discard}})
	if err := serve(flags); err != nil {
		_, _ = io.WriteString(os.Stderr, "cove-gvisor: "+err.Error()+"\n")
		return 1
	}
	return 0
}

func serve(flags []string) error {
	set := flag.NewFlagSet("runsc", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	config.RegisterFlags(set)
	if err := set.Parse(flags); err != nil {
		return err
	}
	conf, err := config.NewFromFlags(set)
	if err != nil {
		return err
	}
	conn, err := warden.Conn(warden.SocketFD)
	if err != nil {
		return err
	}
	return warden.Serve(conn, keeper{conf})
}

// keeper does for a warden what the commands of runsc do.
type keeper struct{ conf *config.Config }

var _ warden.Handler = keeper{}

// load finds a sandbox. Each call has a container of its own: what is in it must
// not be shared.
func (k keeper) load(id string, opts container.LoadOpts) (*container.Container, error) {
	opts.Exact = true
	return container.Load(k.conf.RootDir, container.FullID{SandboxID: id, ContainerID: id}, opts)
}

// Enter implements [warden.Handler]. That the sandbox lives need not be asked
// before: it does if the program starts.
func (k keeper) Enter(id string, p warden.Program, s warden.Streams) error {
	c, err := k.load(id, container.LoadOpts{SkipCheck: true})
	if err != nil {
		return err
	}
	_, err = c.Execute(k.conf, &control.ExecArgs{
		Argv:             p.Argv,
		Envv:             p.Env,
		WorkingDirectory: "/",
		Capabilities:     capabilities(p.Admin),
		NoNewPrivileges:  true,
		FilePayload:      control.NewFilePayload(map[int]*os.File{0: s.In, 1: s.Out, 2: s.Err}, nil),
	})
	return err
}

func capabilities(admin bool) *auth.TaskCapabilities {
	if !admin {
		return &auth.TaskCapabilities{}
	}
	one := auth.CapabilitySetOf(linux.CAP_SYS_ADMIN)
	return &auth.TaskCapabilities{PermittedCaps: one, EffectiveCaps: one, BoundingCaps: one}
}

// Pause implements [warden.Handler].
func (k keeper) Pause(id string) error {
	c, err := k.load(id, container.LoadOpts{})
	if err != nil {
		return err
	}
	return c.Pause()
}

// Resume implements [warden.Handler].
func (k keeper) Resume(id string) error {
	c, err := k.load(id, container.LoadOpts{})
	if err != nil {
		return err
	}
	return c.Resume()
}

// Checkpoint implements [warden.Handler]. What is not compressed is read faster
// than what is.
func (k keeper) Checkpoint(id, image string) error {
	c, err := k.load(id, container.LoadOpts{})
	if err != nil {
		return err
	}
	return c.Checkpoint(k.conf, image, sandbox.CheckpointOpts{Compression: statefile.CompressionLevelNone, Resume: true})
}

// Remove implements [warden.Handler]. The process is killed before anything else:
// who holds the sandbox's lock may wait for one that never answers.
func (k keeper) Remove(id string) error {
	kill(k.conf.RootDir, id)
	c, err := k.load(id, container.LoadOpts{})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	disown(c)
	return c.Destroy()
}
