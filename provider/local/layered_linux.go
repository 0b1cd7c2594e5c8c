package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// layered is a sandbox where there are layers: it can be saved, doubled and tried
// with. It implements [cove.Snapshotter], [cove.Forker] and [cove.Trier].
type layered struct {
	cove.Sandbox

	s *sandbox
}

// Unwrap lets [cove.As] find the powers below.
func (l layered) Unwrap() cove.Sandbox { return l.Sandbox }

// saving is a provider where there are layers. It implements
// [cove.SnapshotKeeper].
type saving struct{ *Provider }

// Unwrap ends the chain.
func (saving) Unwrap() cove.Provider { return nil }

var (
	_ cove.Snapshotter    = layered{}
	_ cove.Forker         = layered{}
	_ cove.Trier          = layered{}
	_ cove.SnapshotKeeper = saving{}
)

// Unwrap gives [cove.As] what the provider can do only on some hosts.
func (p *Provider) Unwrap() cove.Provider {
	if h, err := p.open(); err != nil || !h.layers() {
		return nil
	}
	return saving{p}
}

// layers reports whether workspaces are made of layers here. Where sandboxes live
// for one program nobody needs them, and landlock says more without.
func (h *hostSide) layers() bool { return !h.cfg.Once && h.unlayered() == nil }

// unlayered says why there are no layers here; nil if there are.
func (h *hostSide) unlayered() error {
	if h.cfg.weak.layers || h.cfg.Once {
		return errors.New("they are left out")
	}
	if why := h.flat.Load(); why != nil {
		return *why
	}
	return stacking()
}

// flatten gives layers up, on a host that refuses them.
func (h *hostSide) flatten(why error) {
	h.flat.Store(&why)
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.everyKit() {
		if k.plan == nil {
			continue
		}
		plan := *k.plan
		plan.Layers = false
		k.plan = &plan
		k.letGo()
	}
}

// prove tries what layers need of the host, in a sandbox that nobody has.
func (s *shelf) prove(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	c := s.change(stepTry)
	c.over = false
	if err := s.show(ctx, c); err != nil {
		return err
	}
	s.took(stepTry, c)
	// As if what is below were of another sandbox.
	s.lower[0].owner++
	if err := s.show(ctx, change{upper: s.state.Upper, lower: s.lower, extra: s.state.Extra}); err != nil {
		return err
	}
	return s.take(ctx, stepDiscard)
}

// stacking says why there are no layers on this host, if there are none: mounts
// of mounts that are mounted nowhere, which Linux has from 6.15 on, and overlays.
var stacking = sync.OnceValue(func() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	var major, minor int
	release := unix.ByteSliceToString(u.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || major < 6 || major == 6 && minor < 15 {
		return fmt.Errorf("the kernel is %s, and they need 6.15", release)
	}
	if os.Geteuid() == 0 {
		// Asking loads it where it is a module.
		if fd, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC); err == nil {
			_ = unix.Close(fd)
			return nil
		}
	}
	known, err := os.ReadFile("/proc/filesystems")
	if err == nil && !bytes.Contains(known, []byte("\toverlay\n")) {
		err = errors.New("the kernel has no overlay")
	}
	return err
})

// enter begins a call on the layers of a sandbox, which the provider waits for;
// busy counts it until its end.
func (l layered) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.s.isGone() {
		return l.s.goneError()
	}
	return l.s.p.books.Enter()
}

// Try implements [cove.Trier].
func (l layered) Try(ctx context.Context) (cove.Trial, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	defer l.s.p.books.Leave()
	t, err := l.s.shelf.try(ctx)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Tried returns the trial that there is; NotFound if there is none.
func (l layered) Tried(ctx context.Context) (cove.Trial, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	defer l.s.p.books.Leave()
	t, err := l.s.shelf.tried()
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Fork implements [cove.Forker]. The copy has the files of the workspace as they
// are now; what they have in common is kept once.
func (l layered) Fork(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	defer l.s.p.books.Leave()
	spec.Snapshot = "" // the files come from here
	h, caps, spec, err := l.s.p.admit(ctx, id, spec)
	if err == nil && spec.Workspace.Kind == cove.WorkspaceDisk {
		err = flatError()
	}
	if err != nil {
		return nil, err
	}
	if err := l.s.p.reserve(id); err != nil {
		return nil, err
	}
	files, err := l.s.shelf.freeze(ctx)
	if err != nil {
		l.s.p.books.Release(id)
		return nil, err
	}
	defer files.drop()
	return l.s.p.build(ctx, h, id, spec, caps, func(ctx context.Context, s *shelf) error { return s.adopt(ctx, files) })
}

// Snapshot implements [cove.Snapshotter].
func (l layered) Snapshot(ctx context.Context, name cove.ID) (cove.Bytes, error) {
	if !name.Valid() {
		return 0, cove.InvalidField("snapshot", "%.60q is not an id", string(name))
	}
	if err := l.enter(ctx); err != nil {
		return 0, err
	}
	defer l.s.p.books.Leave()
	return l.s.p.save(ctx, name, l.s.shelf)
}
