package gvisor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

// hostSide is what a provider stands on.
type hostSide struct {
	cfg     Config
	run     runtime
	path    string // of the runtime
	version string // of the runtime: what its images can be read by
	groups  *cgroup.Manager
	without error // why there are no control groups
	roots   *roots
	notes   notes
	saved   string         // the directory of snapshots
	mapped  bool           // sandboxes are this process's user, which is not root
	leases  *userns.Leases // of users for each sandbox; nil where there are none to give

	mu    sync.Mutex
	trees map[string]*root // by what they were drawn from
}

// The parts of the provider's directory.
const (
	bundlesDir   = "bundles"   // of the runtime; by the name that it knows
	boxesDir     = "boxes"     // what is written down of sandboxes
	rootsDir     = "roots"     // read-only trees
	runDir       = "run"       // the runtime's own
	snapshotsDir = "snapshots" // memory and files
)

// openHost finds what this host has, and ends what an earlier process left
// unfinished.
func openHost(cfg Config) (*hostSide, error) {
	h := &hostSide{cfg: cfg, mapped: !isRoot(), trees: map[string]*root{}, saved: filepath.Join(cfg.Dir, snapshotsDir)}
	for _, dir := range []string{"", bundlesDir, boxesDir, rootsDir, runDir, snapshotsDir, warmDir} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, dir), 0o700); err != nil {
			return nil, diskError(err, "the directory of provider "+name+" cannot be made")
		}
	}
	var ours bool
	var err error
	if h.path, ours, err = findRuntime(cfg); err != nil {
		return nil, err
	}
	if h.version, err = identify(h.path); err != nil {
		return nil, err
	}
	link, err := named(cfg.Dir, h.path)
	if err != nil {
		return nil, err
	}
	agent, err := findAgent(cfg)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(agent)
	h.roots = &roots{dir: filepath.Join(cfg.Dir, rootsDir), agent: agent, hash: hex.EncodeToString(sum[:])}
	h.roots.seen = h.roots.dir
	if userns.CanLease() {
		if h.leases, err = userns.OpenMachine(""); err != nil {
			return nil, unkept(err)
		}
		if h.roots.seen, err = h.roots.expose(); err != nil {
			return nil, err
		}
	}
	h.notes = notes{dir: filepath.Join(cfg.Dir, boxesDir)}
	calls := &cli{path: link, platform: cmp.Or(cfg.Platform, "systrap"), dir: filepath.Join(cfg.Dir, runDir), patience: cmp.Or(cfg.patience, callPatience)}
	h.run = calls
	if ours {
		h.run = newWardened(calls, h.path)
	}
	h.groups, h.without = cgroup.Open(cgroup.Config{Name: groupName(cfg.Dir), Around: cfg.Around, Memory: int64(cfg.Together)})
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	if err := h.sweep(ctx); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// groupName is the name of the control groups of one directory.
func groupName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "cove-gvisor-" + hex.EncodeToString(sum[:6])
}

// support is what the control groups can enforce.
func (h *hostSide) support() cgroup.Support {
	if h.groups == nil {
		return cgroup.Support{Memory: h.without, CPU: h.without, PIDs: h.without, Swap: h.without, Freeze: h.without}
	}
	return h.groups.Support()
}

// bundle is the directory of a sandbox that the runtime knows by a name.
func (h *hostSide) bundle(name string) string { return filepath.Join(h.cfg.Dir, bundlesDir, name) }

// sweep ends what belongs to nobody: spares of an earlier process, and what was
// not finished.
func (h *hostSide) sweep(ctx context.Context) error {
	used, roots, err := h.used()
	if err != nil {
		return err
	}
	list, err := os.ReadDir(filepath.Join(h.cfg.Dir, bundlesDir))
	if err != nil {
		return diskError(err, "the directory of provider "+name+" cannot be read")
	}
	for _, e := range list {
		if !used[e.Name()] {
			if err := h.end(ctx, e.Name()); err != nil {
				return err
			}
		}
	}
	return errors.Join(h.sweepSnapshots(), h.sweepImages(), h.roots.sweep(roots))
}

// used returns the bundles and the roots that somebody has.
func (h *hostSide) used() (bundles, roots map[string]bool, err error) {
	bundles, roots = map[string]bool{}, map[string]bool{}
	ids, err := h.notes.list()
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if n, err := h.notes.read(id); err == nil {
			bundles[n.Bundle], roots[n.Root] = true, true
		}
	}
	for _, n := range h.snapshots() {
		roots[n.Root] = true
	}
	return bundles, roots, nil
}

// sweepBox ends what is written down under an id, whatever state it is in.
func (h *hostSide) sweepBox(ctx context.Context, id cove.ID) error {
	n, err := h.notes.read(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && n.Bundle != "" {
		if err := h.end(ctx, n.Bundle); err != nil {
			return err
		}
	}
	return h.notes.remove(id)
}

// end ends what the runtime knows by a name, and frees all that it held.
func (h *hostSide) end(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	gone := h.run.remove(ctx, name)
	var errs []error
	if h.groups != nil {
		g, err := h.groups.Group(name)
		if err == nil {
			err = errors.Join(g.Kill(ctx), g.Remove(ctx))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if gone != nil {
		// What the runtime cannot end it may not know any more.
		errs = append(errs, h.hunt(ctx, name), h.run.remove(ctx, name))
	}
	if err := errors.Join(errs...); err != nil {
		return cove.Wrap(cove.Unavailable, err, "a sandbox cannot be ended").Remedy("try again; if it stays so, look for processes named runsc")
	}
	if err := os.RemoveAll(h.bundle(name)); err != nil {
		return diskError(err, "what is left of a sandbox cannot be removed")
	}
	return nil
}

// close lets go of what is only this process's.
func (h *hostSide) close() error {
	err := h.run.close()
	if h.groups != nil {
		err = errors.Join(err, h.groups.Close())
	}
	if h.roots.seen != h.roots.dir {
		err = errors.Join(err, h.roots.hide())
	}
	if isRoot() {
		// An empty network that the runtime shares between sandboxes, and makes again
		// when it needs it.
		unmountAll(filepath.Join(h.cfg.Dir, runDir, "null-netns"))
	}
	return err
}

// named returns the path of the runtime under the name that it expects itself to
// have, whatever its file is called.
func named(dir, path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the path of runsc cannot be found")
	}
	link := filepath.Join(dir, "runsc")
	if to, err := os.Readlink(link); err == nil && to == path {
		return link, nil
	}
	fresh := link + ".new"
	if err := errors.Join(removeFile(fresh), os.Symlink(path, fresh), os.Rename(fresh, link)); err != nil {
		return "", diskError(err, "the directory of provider "+name+" cannot be written to")
	}
	return link, nil
}
