package escape

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cove-sandbox/cove"
)

// arena is where attacks happen: sandboxes, and on the host the things that no
// sandbox may reach.
type arena struct {
	p        cove.Provider
	caps     cove.Capabilities
	attacker string

	dir   string // on the host
	token string // what only the host knows
	leak  *os.File
	*watch
	*offers

	arrangement Arrangement
	world       *World // or nil

	offered cove.Kernels                 // or nil
	kernels map[cove.Sandbox]cove.Kernel // those that were opened

	shared map[*room]cove.Sandbox // nil is the one without a room
	second cove.Sandbox
}

// canary is the name of the variable that the host has and no sandbox.
const canary = "COVE_ESCAPE_CANARY"

// Armed is a Provider, or a wrapper of one with Unwrap, that names the attacker where
// [Options] do not: the way into its sandboxes may be too narrow for this executable.
type Armed interface {
	Attacker() string
}

// openArena lays out what attacks are after. The caller closes it.
func openArena(ctx context.Context, p cove.Provider, caps cove.Capabilities, o Options) (a *arena, err error) {
	a = &arena{p: p, caps: caps, attacker: o.Attacker, arrangement: o.Arrangement, token: rand.Text(), shared: map[*room]cove.Sandbox{}, offered: o.Kernels, kernels: map[cove.Sandbox]cove.Kernel{}}
	if own, ok := cove.As[Armed](p); ok && a.attacker == "" {
		a.attacker = own.Attacker()
	}
	if a.attacker == "" {
		a.attacker = "/proc/self/exe"
	}
	if out, ok := cove.As[Outside](p); ok {
		a.world = out.World()
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close(ctx))
		}
	}()
	if a.dir, err = os.MkdirTemp("", "cove-escape-*"); err != nil {
		return a, cove.Wrap(cove.Unavailable, err, "there is no room for temporary files").Remedy("set TMPDIR to a directory that can be written")
	}
	// Open to everybody: what hides it must be the sandbox, not a permission.
	if err := os.Chmod(a.dir, 0o755); err != nil {
		return a, err
	}
	if err := a.rebait(); err != nil {
		return a, err
	}
	if err := os.Setenv(canary, a.token); err != nil {
		return a, err
	}
	if a.leak, err = openLeak(a.secret()); err != nil {
		return a, err
	}
	if a.watch, err = keepWatch(ctx, a.dir, a.token); err != nil {
		return a, err
	}
	a.offers, err = layOut(a.secret())
	return a, err
}

// secret is a file of the host that no sandbox may see.
func (a *arena) secret() string { return filepath.Join(a.dir, "secret") }

// rebait puts the secret back.
func (a *arena) rebait() error {
	return errors.Join(os.WriteFile(a.secret(), []byte(a.token), 0o666), os.Chmod(a.secret(), 0o666))
}

// unharmed says whether the secret and its directory are as they were.
func (a *arena) unharmed() verdict {
	text, err := os.ReadFile(a.secret())
	if err != nil || string(text) != a.token {
		_ = a.rebait() // for the attacks that follow
		return breach("a file of the host was changed: " + a.secret())
	}
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return failed(err)
	}
	for _, e := range entries {
		if e.Name() != "secret" && e.Name() != socketName {
			_ = os.RemoveAll(filepath.Join(a.dir, e.Name()))
			return breach("a file of the host was made: " + e.Name())
		}
	}
	return heldBy("")
}

// close ends all sandboxes and takes everything away.
func (a *arena) close(ctx context.Context) error {
	errs := []error{os.Unsetenv(canary)}
	errs = append(errs, a.endShared(ctx))
	if a.offers != nil {
		errs = append(errs, os.RemoveAll(a.offers.dir))
	}
	if a.watch != nil {
		errs = append(errs, a.end())
	}
	if a.leak != nil {
		errs = append(errs, a.leak.Close())
	}
	if a.dir != "" {
		errs = append(errs, os.RemoveAll(a.dir))
	}
	return errors.Join(errs...)
}

// endShared ends the sandboxes that many attacks share.
func (a *arena) endShared(ctx context.Context) error {
	var errs []error
	for _, box := range a.shared {
		errs = append(errs, a.destroy(ctx, box))
	}
	if a.second != nil {
		errs = append(errs, a.destroy(ctx, a.second))
	}
	clear(a.shared)
	a.second = nil
	return errors.Join(errs...)
}

// specFor asks for the sandbox that an attack needs.
func (a *arena) specFor(attack Attack) cove.Spec {
	s := a.spec()
	if attack.disk {
		s.Workspace.Kind = cove.WorkspaceDisk
	}
	if attack.room != nil {
		attack.room.furnish(a, &s)
	}
	if attack.own != nil {
		attack.own(&s)
	}
	return s
}

// spec asks for a sandbox with the least that the provider offers, and what the
// arrangement has besides.
func (a *arena) spec() cove.Spec {
	s := cove.Spec{}
	if len(a.caps.Templates) > 0 {
		s.Template = a.caps.Templates[0]
	}
	s.Workspace.Kind = cove.WorkspaceMemory
	if _, ok := a.caps.Workspaces[cove.WorkspaceMemory]; !ok {
		s.Workspace.Kind = cove.WorkspaceDisk
	}
	s.Network.Mode = cove.NetworkNone
	if !slices.Contains(a.caps.Networks, cove.NetworkNone) && len(a.caps.Networks) > 0 {
		s.Network.Mode = a.caps.Networks[0]
	}
	a.arrange(&s)
	return s
}

// common is the sandbox for attacks that leave it usable.
func (a *arena) common(ctx context.Context, needs Attack) (cove.Sandbox, error) {
	if box := a.shared[needs.room]; box != nil {
		return box, nil
	}
	box, err := a.create(ctx, Attack{room: needs.room})
	if err != nil {
		return nil, err
	}
	a.shared[needs.room] = box
	if a.caps.Isolation.Boundary == cove.BoundaryNone {
		return box, nil
	}
	r := &round{arena: a, box: box, via: Exec}
	if v, _ := r.attack(ctx, hello); !v.held {
		return nil, cove.Errorf(cove.Unavailable, "the attacker %s does not answer in a sandbox: %s", a.attacker, v.detail).
			Remedy("its main function must begin with escape.Summoned and escape.Main")
	}
	return box, nil
}

// neighbour is another sandbox.
func (a *arena) neighbour(ctx context.Context) (cove.Sandbox, error) {
	if a.second != nil {
		return a.second, nil
	}
	box, err := a.create(ctx, Attack{})
	a.second = box
	return box, err
}

// create makes a sandbox for an attack, with the attacker in it.
func (a *arena) create(ctx context.Context, attack Attack) (cove.Sandbox, error) {
	spec := a.specFor(attack)
	spec.Floors = attack.Limits
	box, err := a.p.Create(ctx, cove.NewID(), spec)
	if err != nil {
		return nil, fmt.Errorf("create a sandbox: %w", err)
	}
	if !attack.wantsAttacker() || a.caps.Isolation.Boundary == cove.BoundaryNone {
		return box, nil
	}
	if err := a.arm(ctx, box); err != nil {
		return nil, errors.Join(err, a.destroy(ctx, box))
	}
	return box, nil
}

// wantsAttacker reports whether the attack needs the attacker inside.
func (a Attack) wantsAttacker() bool { return a.own == nil || a.armed }

// arm puts the attacker into a sandbox.
func (a *arena) arm(ctx context.Context, box cove.Sandbox) error {
	f, err := os.Open(a.attacker)
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "the attacker %s cannot be read", a.attacker)
	}
	defer func() { _ = f.Close() }() // it was only read
	if err := box.Files().Write(ctx, Name, f, fs.FileMode(0o755)); err != nil {
		return fmt.Errorf("upload the attacker: %w", err)
	}
	return nil
}

func (a *arena) destroy(ctx context.Context, box cove.Sandbox) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	return errors.Join(a.closeKernel(ctx, box), box.Destroy(ctx))
}

// Summoned reports whether a process was started as the attacker.
func Summoned(args []string) bool {
	return len(args) > 0 && filepath.Base(args[0]) == Name
}
