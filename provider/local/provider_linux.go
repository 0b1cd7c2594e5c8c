package local

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/keeper"
	"github.com/cove-sandbox/cove/internal/roster"
)

// Provider makes sandboxes on this machine. It implements [cove.Provider],
// [cove.Preparer] and [cove.Soloist].
type Provider struct {
	cfg   Config
	books *roster.Roster[*sandbox, *spare]

	mu     sync.Mutex
	host   *hostSide // what was found and opened here; nil until needed
	saved  snapshots
	guards sync.WaitGroup // those who wait for the end of keepers

	guarded *keeper.Client // guarded by mu; the one whose end is waited for
}

var (
	_ cove.Provider = (*Provider)(nil)
	_ cove.Preparer = (*Provider)(nil)
	_ cove.Soloist  = (*Provider)(nil)
)

// New returns a provider. It touches nothing but its directory; what the host
// can do is found out when somebody asks.
func New(cfg Config) (*Provider, error) {
	if cfg.Dir == "" {
		return nil, cove.InvalidField("dir", "is empty; name the directory of provider %s", name)
	}
	if err := cfg.Egress.Check(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the directory of provider %s cannot be found", name)
	}
	cfg.Dir = dir
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o700); err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the directory of provider %s cannot be made", name)
	}
	return &Provider{cfg: cfg, books: roster.New[*sandbox, *spare](name), saved: snapshots{leave: cfg.Reserve}}, nil
}

// Name implements [cove.Provider].
func (p *Provider) Name() string { return name }

func closedError() error { return roster.Closed(name) }

// open returns what the provider stands on.
func (p *Provider) open() (*hostSide, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.books.Open(); err != nil {
		return nil, err
	}
	if p.host == nil {
		h, err := openHost(p.cfg)
		if err != nil {
			return nil, err
		}
		p.host = h
		p.saved.finish(p.cfg.Dir, h.unsaved)
		h.unsaved = nil
	}
	return p.host, nil
}

// List implements [cove.Provider]: what lives here, and what processes that are
// gone left of their control groups and workspaces.
func (p *Provider) List(ctx context.Context) iter.Seq2[cove.ID, error] {
	return roster.List(func() ([]cove.ID, error) { return p.list(ctx) })
}

func (p *Provider) list(ctx context.Context) ([]cove.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h, err := p.open()
	if err != nil {
		return nil, err
	}
	left, err := h.left()
	if err != nil {
		return nil, err
	}
	left = append(left, h.keeping.list()...)
	slices.Sort(left)
	return p.books.IDs(slices.Compact(left)...), nil
}

// Remove implements [cove.Provider].
func (p *Provider) Remove(ctx context.Context, id cove.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !id.Valid() {
		return nil
	}
	if err := p.books.Enter(); err != nil {
		return err
	}
	defer p.books.Leave()
	h, err := p.open()
	if err != nil {
		return err
	}
	box, known := p.books.Get(id)
	switch {
	case box != nil:
		return box.Destroy(ctx)
	case known:
		return nil // it is being made; whoever makes it answers for it
	}
	if m := h.keeping.take(id); m != nil {
		return h.endHeld(ctx, id, m)
	}
	if h.live.has(id) {
		return nil // a spare, or the control group of another
	}
	return h.sweep(ctx, id)
}

// Close ends all sandboxes, unless there is a keeper: then they live on, and only
// spares end.
func (p *Provider) Close() error {
	boxes, spares, first := p.books.Close(nil)
	if !first {
		return nil
	}
	p.mu.Lock()
	h := p.host
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	for _, box := range boxes {
		errs = append(errs, box.part(ctx))
	}
	for _, s := range spares {
		errs = append(errs, s.Discard(ctx))
	}
	p.saved.close()
	if h != nil {
		errs = append(errs, h.close())
	}
	p.guards.Wait()
	return errors.Join(errs...)
}
