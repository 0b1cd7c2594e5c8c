package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/capability"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/initproc"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/linux/netns"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// Probe implements [cove.Provider]. Unless the provider was opened for few
// sandboxes only, it makes one and ends it, the first time: nothing says more
// about a host.
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
		if _, ok := errors.AsType[*cove.Error](err); ok && cove.CodeOf(err) == cove.Unavailable && p.books.Open() == nil {
			return unready(cove.Capabilities{}, err), nil
		}
		return cove.Capabilities{}, err
	}
	caps := h.capabilities()
	if caps.Ready && !p.cfg.Once {
		if err := h.try(ctx); err != nil {
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				return caps, err
			}
			return unready(caps, err), nil
		}
		caps = h.capabilities() // which may have learned something
	}
	caps.Notes = append(caps.Notes, p.saved.unwritten()...)
	caps.Templates = h.templates()
	if p.cfg.Templates != nil && !p.cfg.Once {
		caps.Notes = append(caps.Notes, p.cfg.Templates.Lacking()...)
	}
	return caps, nil
}

// unready is the report of a host that cannot make sandboxes.
func unready(c cove.Capabilities, err error) cove.Capabilities {
	c.Ready, c.Why = false, cove.MessageOf(err)
	c.Remedy = cove.RemedyOf(err)
	return c
}

// try makes a sandbox and ends it, once.
func (h *hostSide) try(ctx context.Context) error {
	if h.tried.Load() {
		return nil
	}
	if h.keeps() {
		if _, err := h.keeper(ctx); err != nil {
			return err
		}
	}
	m, err := h.make(ctx, cove.NewID(), wish{places: sparePlaces})
	if err != nil {
		return err
	}
	if m.shelf != nil {
		if err := m.shelf.prove(ctx); err != nil {
			h.flatten(err)
		}
	}
	return m.drop(context.WithoutCancel(ctx))
}

// capabilities is what can be known of this host without trying. Who makes few
// sandboxes looks once.
func (h *hostSide) capabilities() cove.Capabilities {
	if !h.cfg.Once {
		return h.look()
	}
	h.looks.Lock()
	defer h.looks.Unlock()
	if known := h.known.Load(); known != nil {
		return *known
	}
	c := h.look()
	h.known.Store(&c)
	return c
}

func (h *hostSide) look() cove.Capabilities {
	has, mounts := h.support(), mount.Probe()
	hard := func(missing error) cove.Enforcement {
		if missing != nil {
			return cove.Absent
		}
		return cove.Hard
	}
	c := cove.Capabilities{
		Ready: true,
		Isolation: cove.Isolation{
			Boundary: cove.BoundaryNamespaces, Network: cove.Hard,
			Memory: hard(errors.Join(has.Memory, has.Swap)), CPU: hard(has.CPU), PIDs: hard(h.countsProcesses(has)),
			Disk: cove.Hard, Files: cove.Hard, Policy: policy(),
		},
		Workspaces: map[cove.WorkspaceKind]cove.Quota{cove.WorkspaceMemory: {Bytes: cove.Hard, Files: cove.Hard}},
		Networks:   networks,
		Templates:  []string{Base},
		Volumes:    mounts.SetAttr == nil,
		Powers:     []cove.Power{cove.PowerDial, cove.PowerPrepare, cove.PowerSolo, cove.PowerTerminal},
		Notes:      h.notes(has),
	}
	if h.disks.why == nil {
		c.Workspaces[cove.WorkspaceDisk] = h.disks.quota()
	}
	if has.Freeze == nil {
		c.Powers = append(c.Powers, cove.PowerPause)
	}
	if h.layers() {
		c.Powers = append(c.Powers, cove.PowerSnapshot, cove.PowerFork, cove.PowerTrial)
	}
	if h.cfg.weak.network {
		c.Networks = c.Networks[:1] // what leads out would lead out of the host's
	}
	if len(c.Networks) > 1 {
		c.Powers = append(c.Powers, cove.PowerEgress)
	}
	for _, probe := range []func() error{initproc.Probe, seccomp.Probe, capability.Probe, netns.Probe, func() error { return mounts.Descriptors }} {
		if err := probe(); err != nil {
			c.Ready, c.Why, c.Remedy = false, err.Error(), remedyOf(err)
			break
		}
	}
	if h.keeps() {
		c.Powers = append(c.Powers, cove.PowerAttach, cove.PowerResume)
	}
	return c
}

// policy is how far a sandbox of this host holds a list of programs. The agent of each
// sandbox looks closer.
func policy() cove.Enforcement {
	const movesFiles = 2 // the version of landlock that programs can live with
	if abi, err := landlock.ABI(); err != nil || abi < movesFiles {
		return cove.Soft
	}
	return cove.Hard
}

// countsProcesses returns nil where the kernel bounds the processes of a sandbox:
// by its user, if nobody else has that, or by its user namespace.
func (h *hostSide) countsProcesses(has cgroup.Support) error {
	if h.become || os.Geteuid() != 0 && counting() {
		return nil
	}
	return has.PIDs
}

// counting reports whether the kernel counts the processes of a user in each
// user namespace apart, as it does from 5.14 on.
var counting = sync.OnceValue(func() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 14)
})

// notes says what a table of limits cannot.
func (h *hostSide) notes(has cgroup.Support) []string {
	var notes []string
	add := func(what string, err error) {
		notes = append(notes, what+": "+err.Error()+"; "+remedyOf(err))
	}
	if err := landlock.Probe(); err != nil {
		add("there is no second wall behind the mounts", err)
	}
	seen := map[string]bool{}
	for _, err := range []error{has.Memory, has.CPU, h.countsProcesses(has), has.Swap} {
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			add("not every limit can be enforced", err)
		}
	}
	if note, ok := h.disks.note(); ok {
		notes = append(notes, note)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.plan != nil && !h.plan.Proc {
		notes = append(notes, "sandboxes have no /proc, since this container masks its own: some programs miss it, and ending one program of a sandbox ends them all; "+
			"run the container with --security-opt systempaths=unconfined")
	}
	if why := h.unlayered(); why != nil && !h.cfg.Once {
		notes = append(notes, "there are no snapshots, forks and trials: "+why.Error())
	}
	if !h.become {
		notes = append(notes, "all sandboxes are the same user of the host; as root each would have a user for itself")
	}
	return notes
}
