//go:build linux

package docker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/roster"
)

// Provider makes sandboxes of containers. It implements [cove.Provider],
// [cove.Preparer] and [cove.SnapshotKeeper].
type Provider struct {
	cfg   Config
	began time.Time
	books *roster.Roster[*sandbox, *spare]

	mu     sync.Mutex
	engine *engine        // nil until needed
	facts  *facts         // what was found out last; nil if nothing
	owner  string         // whose containers are ours; "" until needed
	agent  string         // the volume with the agent; "" until it is there
	usual  map[kind]shape // what was asked for last
	tried  trial          // of the engine that was seen last

	together together

	filling  sync.Mutex // held while the agent is brought to the engine
	sweeping sync.Mutex
	swept    bool // guarded by sweeping; what an earlier process left is gone

	policy atomic.Pointer[cove.Enforcement] // as the agent of a container said; nil before the first

	left map[string]string // guarded by mu: containers that were to be removed and could not be, with their volumes
}

var (
	_ cove.Provider       = (*Provider)(nil)
	_ cove.Preparer       = (*Provider)(nil)
	_ cove.SnapshotKeeper = (*Provider)(nil)
)

// New returns a provider. It dials nothing and makes nothing.
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
	if cfg.Image == "" {
		cfg.Image = DefaultImage
	}
	return &Provider{
		cfg: cfg, began: time.Now(), books: roster.New[*sandbox, *spare](name), usual: map[kind]shape{},
		left: map[string]string{},
	}, nil
}

// Name implements [cove.Provider].
func (p *Provider) Name() string { return name }

// open returns the client of the engine.
func (p *Provider) open() (*engine, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine == nil {
		e, err := connect(p.cfg)
		if err != nil {
			return nil, err
		}
		p.engine = e
	}
	return p.engine, nil
}

// mine returns the client and the mark of what is ours.
func (p *Provider) mine() (*engine, string, error) {
	e, err := p.open()
	if err != nil {
		return nil, "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner == "" {
		if p.owner, err = readOwner(p.cfg.Dir); err != nil {
			return nil, "", cove.Wrap(cove.Unavailable, err, "the directory %s of provider %s cannot be used", p.cfg.Dir, name).Remedy("make it writable for this user")
		}
	}
	return e, p.owner, nil
}

// readOwner reads the mark of a directory, which is made once.
func readOwner(dir string) (string, error) {
	file := filepath.Join(dir, "owner")
	text, err := os.ReadFile(file) //nolint:gosec // in the provider's own directory
	if err == nil && len(text) == 2*ownerBytes {
		return string(text), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	mark := make([]byte, ownerBytes)
	_, _ = rand.Read(mark) // it never fails
	return hex.EncodeToString(mark), writeFile(file, []byte(hex.EncodeToString(mark)))
}

const ownerBytes = 12

// writeFile writes a file that appears whole, and stays.
func writeFile(file string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// holding is a container, and the volume that goes with it; "" if there is none.
type holding struct{ container, volume string }

// ours are the containers with our mark, by name.
func (p *Provider) ours(ctx context.Context) (map[string]holding, error) {
	e, owner, err := p.mine()
	if err != nil {
		return nil, err
	}
	ask, cancel := within(ctx, doPatience)
	defer cancel()
	list, err := e.ContainerList(ask, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", labelOwner+"="+owner)})
	if err != nil {
		return nil, e.fault(ctx, err, "list its containers")
	}
	found := map[string]holding{}
	for _, c := range list.Items {
		if len(c.Names) > 0 {
			found[strings.TrimPrefix(c.Names[0], "/")] = holding{c.ID, c.Labels[labelWorkspace]}
		}
	}
	return found, nil
}

// List implements [cove.Provider].
func (p *Provider) List(ctx context.Context) iter.Seq2[cove.ID, error] {
	return roster.List(func() ([]cove.ID, error) { return p.list(ctx) })
}

func (p *Provider) list(ctx context.Context) ([]cove.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	if err := errors.Join(p.sweep(ctx), p.sweepLeft(ctx)); err != nil {
		return nil, err
	}
	found, err := p.ours(ctx)
	if err != nil {
		return nil, err
	}
	var ids []cove.ID
	for name := range found {
		if id := cove.ID(strings.TrimPrefix(name, prefix)); id.Valid() {
			ids = append(ids, id)
		}
	}
	for _, id := range p.notes() { // of containers that somebody removed
		if _, there := found[prefix+string(id)]; !there {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Remove implements [cove.Provider].
func (p *Provider) Remove(ctx context.Context, id cove.ID) error {
	if err := ctx.Err(); err != nil || !id.Valid() {
		return err
	}
	if err := p.books.Enter(); err != nil {
		return err
	}
	defer p.books.Leave()
	if box, _ := p.books.Get(id); box != nil {
		return box.Destroy(ctx)
	}
	found, err := p.ours(ctx)
	if err != nil {
		return err
	}
	h, ok := found[prefix+string(id)]
	if !ok { // somebody removed it
		n, _ := p.readNote(id)
		err = p.dropVolume(ctx, n.Volume)
	} else {
		err = p.remove(ctx, h.container, h.volume)
	}
	if err != nil {
		return err
	}
	return p.dropNote(id)
}

// remove ends a container and all it has, and waits for it. What is not there is no
// error. What cannot be removed now is when somebody lists what there is.
func (p *Provider) remove(ctx context.Context, container, volume string) error {
	err := p.end(ctx, container)
	if err == nil {
		err = p.dropVolume(ctx, volume)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.left[container] = volume
	} else {
		delete(p.left, container)
	}
	return err
}

// sweepLeft removes what could not be removed when its time had come: an engine
// that was away then knows its containers again when it is back.
func (p *Provider) sweepLeft(ctx context.Context) error {
	p.mu.Lock()
	left := maps.Clone(p.left)
	p.mu.Unlock()
	for container, volume := range left {
		if err := p.remove(ctx, container, volume); err != nil {
			return err
		}
	}
	return nil
}

// end is remove without the volume of a workspace.
func (p *Provider) end(ctx context.Context, container string) error {
	e, err := p.open()
	if err != nil {
		return err
	}
	do, cancel := within(ctx, removePatience)
	defer cancel()
	_, err = e.ContainerRemove(do, container, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	switch {
	case err == nil || isGone(err):
		return nil
	case isLeaving(err): // somebody else removes it
		return p.awaitGone(do, ctx, e, container)
	}
	return e.fault(ctx, err, "remove a container")
}

// sweep ends, once, what an earlier process prepared and nobody claimed. Nothing
// is prepared before it is done.
func (p *Provider) sweep(ctx context.Context) error {
	p.sweeping.Lock()
	defer p.sweeping.Unlock()
	if p.swept {
		return nil
	}
	found, err := p.ours(ctx)
	if err != nil {
		return err
	}
	for name, h := range found {
		if strings.HasPrefix(name, sparePrefix) || strings.HasPrefix(name, helperPrefix) {
			if err := p.remove(ctx, h.container, h.volume); err != nil {
				return err
			}
		}
	}
	e, owner, err := p.mine()
	if err != nil {
		return err
	}
	do, cancel := within(ctx, removePatience)
	defer cancel()
	if err := e.dropVolumes(do, labelOwner+"="+owner); err != nil {
		return e.fault(ctx, err, "remove a volume")
	}
	p.dropDrafts()
	p.swept = true
	return nil
}

// Close implements [cove.Provider]: sandboxes live on, spares end.
func (p *Provider) Close() error {
	boxes, spares, first := p.books.Close(nil)
	if !first {
		return nil
	}
	p.mu.Lock()
	e := p.engine
	p.mu.Unlock()
	var errs []error
	for _, s := range spares {
		errs = append(errs, s.Discard(context.Background()))
	}
	for _, s := range boxes {
		s.leave()
	}
	errs = append(errs, p.leaveGroups())
	if e != nil {
		e.close()
	}
	return errors.Join(errs...)
}
