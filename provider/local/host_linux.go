package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

// patience bounds the wait for processes that were killed.
const patience = 20 * time.Second

// hostSide is what a provider found on its host, and holds open.
type hostSide struct {
	cfg        Config
	become     bool // each sandbox is a user of the host for itself
	leases     *userns.Leases
	control    func() (*cgroup.Manager, error) // opens the control groups, once; the error says why there are none
	executable *os.File
	proc       *os.File
	disks      *disks
	ahead      *headStart              // nil where nothing was begun before
	first      atomic.Pointer[cove.ID] // whose control group is made before anybody asks for it

	keeping keeping
	unsaved []heldSnapshot // of an earlier process; taken by the first who opens us

	tried atomic.Bool // a sandbox was made here before
	known atomic.Pointer[cove.Capabilities]
	looks sync.Mutex            // held by who looks, so that others need not
	live  names                 // of control groups that somebody here holds
	flat  atomic.Pointer[error] // why there are no layers, if that was found out

	kit    // of the base
	mu     sync.Mutex
	closed bool               // guarded by mu
	kits   map[string]*kit    // guarded by mu; of templates, by what was built
	makers map[cove.ID]*maker // guarded by mu; spawners beside those of kits, whose sandboxes live
}

func openHost(cfg Config) (_ *hostSide, err error) {
	h := &hostSide{cfg: cfg}
	h.kit.host = h
	defer func() {
		if err != nil {
			_ = h.close()
		}
	}()
	groups := cgroup.Config{Name: groupName(cfg.Dir), Around: cfg.Around, Memory: int64(cfg.Together)}
	if cfg.Once {
		first := cove.NewID()
		groups.First = string(first)
		h.first.Store(&first)
		h.live.add(first)
	}
	h.control = sync.OnceValues(func() (*cgroup.Manager, error) { return cgroup.Open(groups) })
	if cfg.Once {
		go func() { _, _ = h.control() }() // which takes as long as all else before the first sandbox
	}
	if h.become = userns.CanLease(); h.become {
		if h.leases, err = userns.OpenMachine(cfg.Users); err != nil {
			return nil, cove.Wrap(cove.Unavailable, err, "the users of sandboxes cannot be kept apart").Remedy("let root write to /run/cove")
		}
	}
	h.disks = openDisks(cfg.Dir, h.become, cfg.Reserve)
	path, err := agentPath(cfg)
	if err != nil {
		return nil, err
	}
	if h.executable, err = openPath(path); err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the executable of the agent cannot be opened")
	}
	if h.proc, err = openPath("/proc"); err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "there is no /proc").Remedy("mount it, or run cove where it is")
	}
	h.findKeeper()
	if cfg.Once && h.become && !cfg.weak.network {
		h.ahead = ahead.Swap(nil)
	}
	if cfg.Once {
		go func() { _, _, _ = h.builders() }()
	}
	return h, nil
}

// openPath opens something for passing it on.
func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// groupName names the control groups of a provider after its directory, so that
// another process finds what this one left.
func groupName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "cove-" + hex.EncodeToString(sum[:6])
}

// newName is the name of a sandbox that has no id yet.
func (h *hostSide) newName() cove.ID {
	if first := h.first.Swap(nil); first != nil {
		return *first
	}
	return cove.NewID()
}

// support says what control groups can enforce here.
func (h *hostSide) support() cgroup.Support {
	groups, why := h.control()
	if groups == nil {
		return cgroup.Support{Memory: why, CPU: why, PIDs: why, Swap: why, Freeze: why}
	}
	return groups.Support()
}

// left returns the sandboxes of which control groups or workspaces are there and
// which nobody here holds.
func (h *hostSide) left() ([]cove.ID, error) {
	found, err := h.disks.left()
	if groups, _ := h.control(); groups != nil && err == nil {
		var names []string
		names, err = groups.List()
		for _, n := range names {
			found = append(found, cove.ID(n))
		}
	}
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the sandboxes of provider %s cannot be listed", name)
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(id cove.ID) bool { return !id.Valid() || h.live.has(id) }), nil
}

// sweep ends what is left of a sandbox whose holder is gone.
func (h *hostSide) sweep(ctx context.Context, id cove.ID) error {
	err := error(nil)
	if groups, _ := h.control(); groups != nil {
		err = sweepGroup(ctx, groups, id)
	}
	if err == nil {
		err = h.disks.sweep(ctx, id)
	}
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "what is left of sandbox %s cannot be removed", id).Remedy("try again; if it stays, end its processes")
	}
	return nil
}

func sweepGroup(ctx context.Context, groups *cgroup.Manager, id cove.ID) error {
	g, err := groups.Group(string(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(g.Kill(ctx), g.Remove(ctx))
}

func (h *hostSide) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	var errs []error
	for k := range h.everyKit() {
		errs = append(errs, k.letGo()...)
	}
	for _, m := range h.makers {
		errs = append(errs, m.end())
	}
	errs = append(errs, h.leaveKeeper())
	if h.control != nil {
		if groups, _ := h.control(); groups != nil {
			errs = append(errs, groups.Close())
		}
	}
	for _, f := range []*os.File{h.executable, h.proc} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// remedyOf is what to do about something that is missing.
func remedyOf(err error) string {
	if r := linux.RemedyOf(err); r != "" {
		return r
	}
	return "run cove doctor"
}
