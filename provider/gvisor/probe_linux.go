package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

// networks are those that sandboxes can have. All others would need addresses
// that are not the sandbox's own to lead somewhere.
var networks = []cove.NetworkMode{cove.NetworkNone, cove.NetworkAllow}

// Probe implements [cove.Provider]. The first time it makes a sandbox and ends it.
func (p *Provider) Probe(ctx context.Context) (cove.Capabilities, error) {
	if err := ctx.Err(); err != nil {
		return cove.Capabilities{}, err
	}
	if err := p.books.Enter(); err != nil {
		return cove.Capabilities{}, err
	}
	defer p.books.Leave()
	h, err := p.open()
	if err != nil {
		return unready(cove.Capabilities{Isolation: cove.Isolation{Boundary: cove.BoundaryUserKernel}}, err), nil
	}
	caps := h.capabilities()
	if err := h.try(ctx); err != nil {
		if ctx.Err() != nil {
			return caps, ctx.Err()
		}
		return unready(caps, err), nil
	}
	caps.Templates = h.templates()
	caps.Notes = append(caps.Notes, h.lacking()...)
	return caps, nil
}

// unready is the report of a host that cannot make sandboxes.
func unready(c cove.Capabilities, err error) cove.Capabilities {
	c.Ready, c.Why, c.Remedy = false, cove.MessageOf(err), cove.RemedyOf(err)
	return c
}

// tryPatience bounds the first try: a host that needs longer is not ready.
const tryPatience = 8 * time.Second

// proven are the runtimes and agents that have made a sandbox in this process.
var proven sync.Map

// try makes a sandbox and ends it, once.
func (h *hostSide) try(ctx context.Context) error {
	key := h.version + " " + h.roots.hash + " " + h.cfg.Platform
	if _, ok := proven.Load(key); ok {
		return nil
	}
	if _, err := versionOf(ctx, h.path); err != nil {
		return err
	}
	if h.mapped {
		if err := userns.Probe().Create; err != nil {
			return cove.Errorf(cove.Unavailable, "%s", err.Error()).Remedy("%s", linux.RemedyOf(err))
		}
	}
	b, err := h.find(Base)
	if err != nil {
		return err
	}
	trying, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	err = h.tryOne(trying, b)
	if err != nil && trying.Err() != nil && ctx.Err() == nil {
		err = cove.Wrap(cove.Unavailable, err, "gVisor cannot make a sandbox: none answers within %s", tryPatience).
			Remedy("try again when the machine does less, or choose another provider with SANDBOX_PROVIDER")
	}
	if err != nil {
		return h.blame(err)
	}
	proven.Store(key, true)
	return nil
}

func (h *hostSide) tryOne(ctx context.Context, b base) error {
	m, err := h.make(ctx, string(cove.NewID()), wish{base: b, places: placesOf(cove.Spec{})})
	if err != nil {
		return err
	}
	conn, err := m.begin(ctx, guest.Options{}, false)
	if err == nil {
		err = conn.Close()
	}
	return errors.Join(err, m.drop(ctx))
}

// blame names the setting that may be the reason why nothing can be made: gVisor
// itself says no more than that its kernel has ended.
func (h *hostSide) blame(err error) error {
	if h.cfg.Platform == "" || h.cfg.Platform == "systrap" {
		return err
	}
	return cove.Wrap(cove.Unavailable, err, "COVE_GVISOR_PLATFORM is %s, and %s", h.cfg.Platform, cove.MessageOf(err)).
		Remedy("unset COVE_GVISOR_PLATFORM, since systrap works everywhere; kvm needs a machine with virtualization and a user who may open /dev/kvm")
}

// capabilities is what can be known of this host without trying.
func (h *hostSide) capabilities() cove.Capabilities {
	has := h.support()
	hard := func(missing error, otherwise cove.Enforcement) cove.Enforcement {
		if missing != nil {
			return otherwise
		}
		return cove.Hard
	}
	return cove.Capabilities{
		Ready: true,
		Isolation: cove.Isolation{
			Boundary: cove.BoundaryUserKernel, Network: cove.Hard,
			Memory: hard(errors.Join(has.Memory, has.Swap), cove.Soft), CPU: hard(has.CPU, cove.Absent), PIDs: cove.Hard,
			Disk: cove.Hard, Files: cove.Hard, Policy: cove.Soft, // gVisor has no landlock
		},
		Workspaces: map[cove.WorkspaceKind]cove.Quota{cove.WorkspaceMemory: {Bytes: cove.Hard, Files: cove.Hard}},
		Networks:   networks,
		Templates:  []string{Base},
		Volumes:    !h.mapped,
		Powers: []cove.Power{
			cove.PowerPause, cove.PowerSnapshot, cove.PowerFork, cove.PowerDial, cove.PowerPrepare, cove.PowerTerminal,
			cove.PowerAttach, cove.PowerResume, cove.PowerEgress,
		},
		Notes: h.remarks(),
	}
}

// remarks says what a table of limits cannot.
func (h *hostSide) remarks() []string {
	notes := []string{
		"snapshots and forks have the memory of the sandbox and go on where it was, if they are made with the same template, sizes, number of processes and gVisor; else they have its files",
		"there is no network open: only names on a list can be reached, and while the server is down nothing gets out",
	}
	seen := map[string]bool{}
	has := h.support()
	for _, err := range []error{has.Memory, has.CPU, has.Swap} {
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			notes = append(notes, "not every limit can be enforced: "+err.Error()+"; "+linux.RemedyOf(err))
		}
	}
	if h.leases == nil {
		notes = append(notes, "all sandboxes are the same user of the host, which is this process's; as root, with all users to give away, each is one for itself")
	}
	if h.mapped {
		notes = append(notes, "there are no volumes: without root, files of the host cannot be given to the user of a sandbox")
	}
	return notes
}

// findRuntime returns the executable of the runtime, and whether it is ours.
func findRuntime(cfg Config) (path string, ours bool, err error) {
	if cfg.Runsc == "" {
		path, err = builtin(cfg)
		return path, true, err
	}
	if path, err = exec.LookPath(cfg.Runsc); err != nil {
		return "", false, cove.Wrap(cove.Unavailable, err, "there is no runsc at %.200q that can be executed", cfg.Runsc).
			Remedy("set COVE_GVISOR_RUNSC to the path of runsc, or leave it out")
	}
	return path, false, nil
}

// identify returns what tells a runtime from every other one, and from itself
// after an upgrade.
func identify(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the executable %.200q cannot be looked at", path).Remedy("let this user execute it")
	}
	return fmt.Sprintf("%s %d %d", filepath.Base(path), info.Size(), info.ModTime().UnixNano()), nil
}

// versionOf asks a runtime what it is.
func versionOf(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Args[0], cmd.Env, cmd.WaitDelay = "runsc", []string{}, time.Second
	out, err := cmd.Output()
	if first, _, _ := strings.Cut(string(out), "\n"); err == nil && strings.HasPrefix(first, "runsc version") {
		return first, nil
	}
	return "", cove.Wrap(cove.Unavailable, errors.Join(err, ctx.Err()), "%.200q is no runsc: it does not say its version", path).
		Remedy("set COVE_GVISOR_RUNSC to the path of runsc, or leave it out")
}
