package gvisor

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/roster"
)

// Provider makes sandboxes with gVisor. It implements [cove.Provider],
// [cove.Preparer] and [cove.SnapshotKeeper].
type Provider struct {
	cfg Config

	books  *roster.Roster[*sandbox, *spare]
	images *images

	mu     sync.Mutex
	host   *hostSide            // what was found and opened here; nil until needed
	likely map[cove.Mold]places // what spares of a mold are most likely claimed with
}

var (
	_ cove.Provider       = (*Provider)(nil)
	_ cove.Preparer       = (*Provider)(nil)
	_ cove.SnapshotKeeper = (*Provider)(nil)
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
	return &Provider{
		cfg: cfg, books: roster.New[*sandbox, *spare](name), likely: map[cove.Mold]places{}, images: newImages(),
	}, nil
}

// Name implements [cove.Provider].
func (p *Provider) Name() string { return name }

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
	}
	return p.host, nil
}

// List implements [cove.Provider]: what is written down, whether it lives or not.
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
	noted, err := h.notes.list()
	if err != nil {
		return nil, err
	}
	return p.books.IDs(noted...), nil
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
	return h.sweepBox(ctx, id)
}

// closePatience bounds what is done at the end of a provider.
const closePatience = 30 * time.Second

// Close lets go of all sandboxes, which live on; spares end.
func (p *Provider) Close() error {
	boxes, spares, first := p.books.Close(func() { close(p.images.over) })
	if !first {
		return nil
	}
	p.mu.Lock()
	h := p.host
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	var errs []error
	for _, box := range boxes {
		errs = append(errs, box.part(ctx))
	}
	for _, s := range spares {
		errs = append(errs, s.Discard(ctx))
	}
	errs = append(errs, p.images.close())
	if h != nil {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// isRoot reports whether this process may do what only root may.
func isRoot() bool { return os.Geteuid() == 0 }
