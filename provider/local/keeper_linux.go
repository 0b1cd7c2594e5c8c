package local

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/keeper"
)

// keeperPatience bounds the wait for a keeper.
const keeperPatience = 30 * time.Second

// keeping is what a provider has to do with its keeper.
type keeping struct {
	start sync.Mutex // held while one is started

	mu     sync.Mutex
	client *keeper.Client       // guarded by mu; nil if there is none, or none is known
	left   map[cove.ID]*heldBox // guarded by mu; what it holds and nobody attached to
	lost   string               // guarded by mu; why what an earlier keeper held is gone
	closed bool                 // guarded by mu
}

// heldBox is a sandbox of an earlier process.
type heldBox struct {
	made *made
	note note
}

// note is what the next process must know of a sandbox. Fields are added, and
// keep their meaning: an older process may have written it.
type note struct {
	Spec      cove.Spec         `json:"spec"`
	Isolation cove.Isolation    `json:"isolation"`
	Group     cove.ID           `json:"group"`             // the name of its control group
	Grouped   bool              `json:"grouped,omitempty"` // there is one
	PID       int               `json:"pid"`
	User      uint32            `json:"user,omitempty"` // of the host, where it has one
	Searched  []string          `json:"searched,omitempty"`
	Env       map[string]string `json:"env,omitempty"` // of its template
	Way       *wayNote          `json:"way,omitempty"`
	Disk      *diskNote         `json:"disk,omitempty"`  // its workspace, if that is on disk
	Shelf     *shelfNote        `json:"shelf,omitempty"` // its workspace, if that has layers
	Maker     *makerNote        `json:"maker,omitempty"` // who has the rights over it, if we have not
}

// The names of descriptors.
const (
	linkFile    = "link"
	processFile = "process"
	leaseFile   = "lease"
)

// keeps reports whether sandboxes outlive this process.
func (h *hostSide) keeps() bool { return h.cfg.Keeper && !h.cfg.Once }

// findKeeper connects to a keeper that an earlier process started, and looks at
// what it holds. Without one there is nothing to find.
func (h *hostSide) findKeeper() {
	h.keeping.left = map[cove.ID]*heldBox{}
	if !h.keeps() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), keeperPatience)
	defer cancel()
	c, err := keeper.Connect(ctx, h.cfg.Dir)
	switch {
	case errors.Is(err, keeper.ErrVersion):
		// What it holds cannot be had any more, and must not live on unseen.
		h.keeping.lost = err.Error()
		_ = keeper.Evict(ctx, h.cfg.Dir)
		return
	case err != nil:
		return // who needs one learns why there is none
	}
	h.keeping.client = c
	names, err := c.List(ctx)
	records := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, recordPrefix) })
	for _, name := range names {
		if err != nil {
			return
		}
		if !strings.HasPrefix(name, recordPrefix) {
			err = h.find(ctx, c, name)
		}
	}
	for _, name := range records {
		if err != nil {
			return
		}
		err = h.findRecord(ctx, c, name)
	}
}

// findRecord gives a recorded program to its sandbox, or drops one that has none.
func (h *hostSide) findRecord(ctx context.Context, c *keeper.Client, name string) error {
	id, keep, ok := readRecordName(name)
	if b := h.keeping.left[id]; ok && b != nil {
		b.made.held.holds(keep, true)
		return nil
	}
	return c.Drop(ctx, name)
}

// find takes down what the keeper holds of one sandbox. What cannot be understood
// is dropped, and ends by that.
func (h *hostSide) find(ctx context.Context, c *keeper.Client, name string) error {
	got, err := c.Get(ctx, name)
	if errors.Is(err, keeper.ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	if strings.HasPrefix(name, snapshotPrefix) {
		known := h.findSnapshot(c, name, &got)
		got.Close()
		if known {
			return nil
		}
		return c.Drop(ctx, name)
	}
	var n note
	_, link := got.Files[linkFile]
	_, process := got.Files[processFile]
	if json.Unmarshal(got.Note, &n) != nil || !cove.ID(name).Valid() || !n.Group.Valid() || !link || !process {
		got.Close()
		return c.Drop(ctx, name)
	}
	m := &made{
		host: h, name: n.Group, pid: n.PID, link: got.Files[linkFile], process: got.Files[processFile],
		held: &held{client: c, id: name},
	}
	delete(got.Files, linkFile)
	delete(got.Files, processFile)
	if fd, ok := got.Files[leaseFile]; ok && h.leases != nil {
		m.lease = h.leases.Adopt(n.User, os.NewFile(uintptr(fd), leaseFile))
		delete(got.Files, leaseFile)
	}
	m.maker = h.remake(n.Maker, got.Files)
	m.maker.keep()
	if groups, _ := h.control(); groups != nil && n.Grouped {
		if m.group, err = groups.Group(string(n.Group)); err == nil {
			u, _ := m.group.Usage() // 0 is as good a guess as any
			m.starved = u.OOMKills
		}
	}
	m.shelf = m.reshelve(n.Shelf, got.Files)
	got.Close()
	m.disk = h.disks.again(n.Group, n.Disk)
	h.live.add(n.Group)
	h.keeping.left[cove.ID(name)] = &heldBox{made: m, note: n}
	return nil
}

// keeper returns the keeper, and starts one if there is none.
func (h *hostSide) keeper(ctx context.Context) (*keeper.Client, error) {
	k := &h.keeping
	k.start.Lock()
	defer k.start.Unlock()
	k.mu.Lock()
	c, closed := k.client, k.closed
	k.mu.Unlock()
	if closed {
		return nil, closedError()
	}
	if c != nil {
		select {
		case <-c.Done(): // somebody killed it
		default:
			return c, nil
		}
	}
	if !answers.Load() {
		return nil, cove.Errorf(cove.Unavailable, "this program cannot be the keeper of sandboxes").Remedy("call local.Main first in its main")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keeperPatience)
	defer cancel()
	c, err := keeper.Launch(ctx, h.cfg.Dir, guest.Self, keeperEnv(), groupName(h.cfg.Dir), h.cfg.Around)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the keeper of sandboxes cannot be started in %s: %s", h.cfg.Dir, err).
			Remedy("end what is left of another one: keeper.lock there has its process id")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.client = c
	return c, nil
}

// leaveKeeper lets go of what nobody attached to, and of the keeper.
func (h *hostSide) leaveKeeper() error {
	k := &h.keeping
	k.start.Lock()
	defer k.start.Unlock()
	k.mu.Lock()
	c, left := k.client, k.left
	k.client, k.left, k.closed = nil, nil, true
	k.mu.Unlock()
	for _, b := range left {
		b.made.part()
	}
	if c == nil {
		return nil
	}
	return c.Close()
}

func (k *keeping) has(id cove.ID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.left[id] != nil
}

func (k *keeping) list() []cove.ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.left))
}

// take hands over what is left of an earlier process; nil if there is nothing.
func (k *keeping) take(id cove.ID) *heldBox {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.left[id]
	delete(k.left, id)
	return b
}

// giveBack is the inverse of take.
func (k *keeping) giveBack(id cove.ID, b *heldBox) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		b.made.part()
		return
	}
	k.left[id] = b
}

// why says what became of sandboxes that are not there.
func (k *keeping) why() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lost
}

// endHeld ends a sandbox that nobody attached to.
func (h *hostSide) endHeld(ctx context.Context, id cove.ID, b *heldBox) error {
	err := b.made.end(ctx)
	if err != nil {
		h.keeping.giveBack(id, b)
	}
	return err
}

// part lets go of a sandbox that lives on.
func (m *made) part() {
	for _, fd := range []*int{&m.link, &m.process} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
	m.closeHandles()
	if m.shelf != nil {
		m.shelf.close()
	}
	if m.group != nil {
		m.group.Close()
	}
	if m.lease != nil {
		_ = m.lease.Release() // the keeper has it, too
	}
	m.host.live.remove(m.name)
}
