package fake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Provider plays machines below one directory. It implements [cove.Provider];
// its other powers are found with [cove.As].
type Provider struct {
	cfg    Config
	root   *os.Root
	tools  map[string]program
	caps   cove.Capabilities
	powers cove.Provider // the chain that As walks, or nil

	mu     sync.Mutex
	boxes  map[cove.ID]*sandbox // live here; guarded by mu
	spares map[cove.ID]*spare   // prepared here; guarded by mu
	closed bool
}

var _ cove.Provider = (*Provider)(nil)

// New opens the provider on cfg.Dir. Sandboxes that are there already can be
// attached; their programs are gone.
func New(cfg Config) (*Provider, error) {
	cfg = cfg.withDefaults()
	if cfg.Dir == "" {
		return nil, cove.InvalidField("dir", "is empty; name the directory for the sandboxes of provider %s", cfg.Name)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the directory of provider %s cannot be made", cfg.Name)
	}
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the directory of provider %s cannot be opened", cfg.Name)
	}
	p := &Provider{
		cfg: cfg, root: root, tools: programs(),
		boxes: map[cove.ID]*sandbox{}, spares: map[cove.ID]*spare{},
	}
	p.caps = p.capabilities()
	p.powers = p.layers()
	cfg.Keeper.cutOff()
	return p, nil
}

// Name implements [cove.Provider].
func (p *Provider) Name() string { return p.cfg.Name }

// Unwrap gives [cove.As] the powers that this provider was configured with.
func (p *Provider) Unwrap() cove.Provider { return p.powers }

func (p *Provider) has(power cove.Power) bool { return slices.Contains(p.cfg.Powers, power) }

func (p *Provider) capabilities() cove.Capabilities {
	iso := p.cfg.Isolation
	quota := cove.Quota{Bytes: iso.Of(cove.LimitDisk), Files: iso.Of(cove.LimitFiles)}
	c := cove.Capabilities{
		Ready: p.cfg.Unready == "", Why: p.cfg.Unready, Isolation: iso,
		Workspaces: map[cove.WorkspaceKind]cove.Quota{cove.WorkspaceMemory: quota, cove.WorkspaceDisk: quota},
		Networks:   []cove.NetworkMode{cove.NetworkNone},
		Templates:  p.cfg.Templates, Volumes: true, Powers: p.cfg.Powers,
	}
	if p.has(cove.PowerEgress) {
		c.Networks = append(c.Networks, cove.NetworkAllow, cove.NetworkOpen)
	}
	if !c.Ready {
		c.Remedy = "take Unready out of the configuration of the fake"
	}
	return c
}

// Probe implements [cove.Provider].
func (p *Provider) Probe(ctx context.Context) (cove.Capabilities, error) {
	if err := p.enter(ctx, "probe", ""); err != nil {
		return cove.Capabilities{}, err
	}
	c := p.caps
	c.Workspaces, c.Networks = maps.Clone(c.Workspaces), slices.Clone(c.Networks)
	c.Templates, c.Powers = slices.Clone(c.Templates), slices.Clone(c.Powers)
	return c, nil
}

// enter begins a step: the caller is still there, the provider is open and the
// hook agrees.
func (p *Provider) enter(ctx context.Context, step string, id cove.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return cove.Errorf(cove.Unavailable, "provider %s is closed", p.cfg.Name)
	}
	return p.hook(step, id)
}

func (p *Provider) hook(step string, id cove.ID) error {
	if p.cfg.Hook == nil {
		return nil
	}
	return p.cfg.Hook(step, id)
}

// delay plays how long something takes on a real host.
func (p *Provider) delay(ctx context.Context) error {
	if p.cfg.Latency <= 0 {
		return nil
	}
	timer := time.NewTimer(p.cfg.Latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// List implements [cove.Provider].
func (p *Provider) List(ctx context.Context) iter.Seq2[cove.ID, error] {
	return func(yield func(cove.ID, error) bool) {
		if err := p.enter(ctx, "list", ""); err != nil {
			yield("", err)
			return
		}
		entries, err := fs.ReadDir(p.root.FS(), ".")
		if err != nil {
			yield("", cove.Wrap(cove.Unavailable, err, "the sandboxes of provider %s cannot be listed", p.cfg.Name))
			return
		}
		for _, e := range entries {
			id := cove.ID(e.Name())
			p.mu.Lock()
			spare := p.spares[id] != nil
			p.mu.Unlock()
			if id.Valid() && !spare && !yield(id, nil) {
				return
			}
		}
	}
}

// Remove implements [cove.Provider].
func (p *Provider) Remove(ctx context.Context, id cove.ID) error {
	if !id.Valid() {
		return nil
	}
	if err := p.enter(ctx, "remove", id); err != nil {
		return err
	}
	p.mu.Lock()
	box := p.boxes[id]
	p.mu.Unlock()
	if box != nil {
		return box.Destroy(ctx)
	}
	if held := p.cfg.Keeper.find(id); held != nil {
		held.stop()
		p.cfg.Keeper.drop(id)
	}
	return p.erase(string(id))
}

// erase removes a directory. The marker goes first: what is left when we die
// in the middle is half a sandbox, which cannot be attached.
func (p *Provider) erase(name string) error {
	err := p.root.Remove(name + "/" + marker)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cove.Wrap(cove.Unavailable, err, "the sandbox %s cannot be removed", name)
	}
	if err := p.root.RemoveAll(name); err != nil {
		return cove.Wrap(cove.Unavailable, err, "the files of sandbox %s cannot be removed", name)
	}
	return nil
}

// Close ends all programs that no Keeper holds, since they live in this process,
// and keeps the sandboxes and their files. Spares are freed. It is idempotent.
func (p *Provider) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	boxes, spares := p.boxes, p.spares
	p.boxes, p.spares = nil, nil
	p.mu.Unlock()
	var errs []error
	for _, box := range boxes {
		switch held := p.cfg.Keeper.find(box.id); {
		case held == box:
			box.leave()
		case held == nil: // another provider has it otherwise
			box.stop()
		}
	}
	for id, s := range spares {
		s.stop()
		errs = append(errs, p.erase(string(id)))
	}
	if err := p.root.Close(); err != nil {
		errs = append(errs, fmt.Errorf("directory of provider: %w", err))
	}
	return errors.Join(errs...)
}

// known reports whether something can be made from a template.
func (p *Provider) known(field, template string) error {
	if slices.Contains(p.cfg.Templates, template) {
		return nil
	}
	return cove.InvalidField(field, "%q is unknown to provider %s; it has %s", template, p.cfg.Name, strings.Join(p.cfg.Templates, ", "))
}
