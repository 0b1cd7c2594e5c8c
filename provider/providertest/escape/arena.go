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

	shared cove.Sandbox
	second cove.Sandbox
}

// canary is the name of the variable that the host has and no sandbox.
const canary = "COVE_ESCAPE_CANARY"

// openArena lays out what attacks are after. The caller closes it.
func openArena(ctx context.Context, p cove.Provider, caps cove.Capabilities, attacker string) (a *arena, err error) {
	if attacker == "" {
		attacker = "/proc/self/exe"
	}
	a = &arena{p: p, caps: caps, attacker: attacker, token: rand.Text()}
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
	a.watch, err = keepWatch(ctx, a.dir, a.token)
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
	for _, box := range []cove.Sandbox{a.shared, a.second} {
		if box != nil {
			errs = append(errs, a.destroy(ctx, box))
		}
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

// spec asks for a sandbox with the least that the provider offers.
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
	return s
}

// common is the sandbox for attacks that leave it usable.
func (a *arena) common(ctx context.Context) (cove.Sandbox, error) {
	if a.shared != nil {
		return a.shared, nil
	}
	box, err := a.create(ctx, Attack{})
	if err != nil {
		return nil, err
	}
	a.shared = box
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
	spec := a.spec()
	if attack.own != nil {
		attack.own(&spec)
	}
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
	return box.Destroy(ctx)
}

// Summoned reports whether a process was started as the attacker.
func Summoned(args []string) bool {
	return len(args) > 0 && filepath.Base(args[0]) == Name
}
