package local

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// mostLayers bounds how many layers are below a workspace; a trial may add one.
const mostLayers = 10

// shelf is what the workspace of one sandbox is made of.
type shelf struct {
	crew

	group     *cgroup.Group // nil where there are none
	own       *store
	namespace int // of the sandbox's mounts
	owner     uint32
	gate      gate // for all that has the agent do something with files or programs
	// keep writes down what the next process must know; nil where there will be none.
	keep func(context.Context, *shelfNote, map[string]int) error

	mu     sync.Mutex
	bounds fence.Bounds  // guarded by mu; of all files that there are to be seen
	shared fence.Bounds  // guarded by mu; what those of other stores take of that
	looked looked        // guarded by mu; when that was measured
	state  shelfState    // guarded by mu
	lower  []layer       // guarded by mu; held
	fresh  unix.Timespec // guarded by mu; when the upper layer was put over the lower ones
	noted  noted         // guarded by mu
	closed bool          // guarded by mu
}

// shelfState is what must be known of a shelf beside its descriptors, to take it
// up again. The lower layers are named in the order of their descriptors.
type shelfState struct {
	Next  int    `json:"next"`            // the number of the next layer
	Upper string `json:"upper"`           // the layer that takes changes
	Below string `json:"below,omitempty"` // while there is a trial, what was the upper layer before
	Extra int64  `json:"extra"`           // directories of the store that are no files of the sandbox
}

// The directories that a layer costs: itself; and the overlay's own, while it is
// the upper one of an overlay.
const (
	layerDirs = 1
	workDirs  = 2
)

// passing is how many files there are for a moment while an overlay is mounted.
const passing = 4

// rootFile is the root of a store, which is a file to the kernel.
const rootFile = 1

func newShelf(c crew, g *cgroup.Group, box fence.Sandbox, owner uint32, size fence.Bounds) *shelf {
	return &shelf{
		crew: c, group: g, own: newStore(box.Store), namespace: box.Namespace, owner: owner, bounds: size,
		state: shelfState{Next: 1, Upper: fence.FirstLayer, Extra: layerDirs},
	}
}

// close lets go of everything.
func (s *shelf) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	_ = unix.Close(s.namespace)
	s.own.drop()
	dropAll(s.lower)
	s.lower = nil
}

// flatError says that a workspace cannot begin with files of another.
func flatError() error {
	return cove.Errorf(cove.Unsupported, "a workspace on disk has no layers, and cannot begin with the files of a snapshot or of another session").
		With("field", "workspace.kind").Remedy("ask for a memory workspace")
}

// begin locks the shelf of a sandbox that is there; unlock it with mu.
func (s *shelf) begin() error {
	if s == nil {
		return flatError()
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return cove.Errorf(cove.NotFound, "the sandbox is gone")
	}
	return nil
}

// do has a job done by who has the rights: we, or the spawner.
func (h *hostSide) do(ctx context.Context, j fence.Job, files ...int) (fence.Done, error) {
	if h.become {
		return h.tools().Do(j, files)
	}
	_, spawner, err := h.builders()
	if err != nil {
		return fence.Done{}, err
	}
	return spawner.Do(ctx, j, files)
}

// tools are ours, where we have the rights.
func (h *hostSide) tools() fence.Tools { return fence.Tools{Proc: int(h.proc.Fd()), Become: true} }

// layerFiles are the descriptors of layers, after others.
func layerFiles(layers []layer, before ...int) []int {
	for _, l := range layers {
		before = append(before, l.store.fd)
	}
	return before
}

// named are the layers as a job names them.
func named(layers []layer) []fence.Layer {
	var all []fence.Layer
	for _, l := range layers {
		all = append(all, fence.Layer{Name: l.name, Owner: l.owner})
	}
	return all
}

// errBusy says that something in the sandbox uses the workspace.
var errBusy = errors.New("the workspace is in use")

// change is what a workspace becomes.
type change struct {
	upper string
	lower []layer
	extra int64  // directories that are no files of the sandbox, afterwards
	slack int64  // and more of them before
	merge string // a layer to be put into the upper one first
	erase string // a layer to be removed afterwards
	over  bool   // what is there may stay below, if nobody uses it
}

// What uses a workspace may be about to end: it is waited for, with longer and longer
// pauses.
const (
	busyPause = time.Millisecond
	busyTime  = 250 * time.Millisecond
)

// show changes what the sandbox has at /workspace, and notes nothing. The caller
// holds mu. errBusy means that nothing has changed.
func (s *shelf) show(ctx context.Context, c change) error {
	until := time.Now().Add(busyTime)
	for pause := busyPause; ; pause *= 2 {
		err := s.showOnce(ctx, c, time.Until(until))
		left := time.Until(until)
		if !errors.Is(err, errBusy) || left <= 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pause, left)):
		}
	}
}

func (s *shelf) showOnce(ctx context.Context, c change, patience time.Duration) error {
	// Not to be cut short: who waits no longer would not know what is there.
	ctx = context.WithoutCancel(ctx)
	if !s.gate.close(patience) {
		return errBusy
	}
	defer s.gate.open()
	move, alone, err := s.still(ctx)
	if err != nil {
		return err
	}
	defer move()
	j := s.job(c)
	j.Bare = c.over && alone
	_, err = s.do(ctx, j, layerFiles(c.lower, s.namespace, s.own.fd)...)
	why, torn := fence.Torn(err)
	switch {
	case torn:
		back := s.job(s.as())
		back.Bare = true
		if _, lost := s.do(ctx, back, layerFiles(s.lower, s.namespace, s.own.fd)...); lost != nil {
			return cove.Wrap(cove.Internal, errors.Join(err, lost), "the workspace is lost: %s", why).Remedy("end this sandbox")
		}
		return unlayered(err, why)
	case errors.Is(err, unix.EBUSY):
		return errBusy
	}
	return broken(err)
}

// broken explains what a job could not do.
func broken(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return cove.Wrap(cove.Exhausted, err, "there is no room for the files").Remedy("remove some, or ask for a larger workspace")
	case errors.Is(err, fence.ErrEnded), errors.Is(err, unix.EPERM): // another spawner has no rights here
		return cove.Wrap(cove.Unavailable, err, "what made the sandbox has ended; its files cannot be layered any more").Remedy("make another sandbox")
	}
	return unlayered(err, err.Error())
}

func unlayered(err error, why string) error {
	return cove.Wrap(cove.Unavailable, err, "the layers of the workspace cannot be changed: %s", why)
}

func (s *shelf) job(c change) fence.Job {
	j := fence.Job{
		Kind: fence.JobShow, Owner: s.owner, Name: c.merge, To: c.erase,
		Stack: fence.Stack{Upper: c.upper, Lower: named(c.lower)},
	}
	if s.bounds.Size > 0 {
		j.Bounds, j.Slack = s.room(c.extra), c.slack+passing
	}
	return j
}

// still keeps the programs of the sandbox from running until move, if there are
// any and the host can do it. The agent may be known to be alone.
func (s *shelf) still(ctx context.Context) (move func(), alone bool, err error) {
	move = func() {}
	if s.group == nil || !s.host.freezes() {
		return move, false, nil
	}
	alone, err = s.group.Alone()
	if err != nil || alone {
		return move, alone, broken(err)
	}
	if s.group.Still() {
		return move, false, nil // somebody else lets them go on
	}
	whole := context.WithoutCancel(ctx)
	soon := func() (context.Context, context.CancelFunc) { return context.WithTimeout(whole, patience) }
	move = func() {
		ctx, cancel := soon()
		defer cancel()
		_ = s.group.Thaw(ctx) // one that is gone needs none
	}
	ctx, cancel := soon()
	defer cancel()
	if err := s.group.Freeze(ctx); err != nil {
		move()
		return nil, false, cove.Wrap(cove.Unavailable, err, "the programs of the sandbox cannot be held still").Remedy("try again")
	}
	return move, false, nil
}

// freezes reports whether programs can be held still here.
func (h *hostSide) freezes() bool {
	no := h.support().Freeze
	return no == nil
}

// as is the change to what is noted, after one that came to nothing.
func (s *shelf) as() change {
	return change{upper: s.state.Upper, lower: s.lower, extra: s.state.Extra, slack: layerDirs + workDirs}
}

// next names a new layer.
func (s *shelf) next() string { return strconv.Itoa(s.state.Next) }

// top is the upper layer as one that is below another.
func (s *shelf) top() layer { return layer{store: s.own, name: s.state.Upper, owner: s.owner} }

// freeze returns the files as they are now. The caller drops them.
func (s *shelf) freeze(ctx context.Context) (*frozen, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if s.state.Below != "" {
		return nil, cove.Errorf(cove.Conflict, "there is a trial; commit or discard it first")
	}
	if !s.untouched() {
		err := errBusy
		if len(s.lower) < mostLayers {
			err = s.cover(ctx)
		}
		if errors.Is(err, errBusy) {
			return s.copy(ctx)
		}
		if err != nil {
			return nil, err
		}
		if err := s.measure(ctx); err != nil {
			return nil, err
		}
	}
	size, files, err := usedBy(s.lower)
	if err != nil {
		return nil, err
	}
	what := &seen{}
	if len(s.lower) == 1 && s.lower[0].store == s.own { // nothing is hidden
		what.took = &fence.Bounds{Size: size, Files: files - rootFile - s.state.Extra}
	}
	return &frozen{layers: holdAll(s.lower), size: cove.Bytes(size), by: s.crew, seen: what}, nil
}

// untouched reports whether nothing was changed since the lower layers were
// frozen: whatever is changed, a name appears at the top of the upper layer.
func (s *shelf) untouched() bool {
	if len(s.lower) == 0 {
		return false
	}
	dir, err := unix.Openat(s.own.fd, s.state.Upper, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(dir) }()
	n, err := unix.Getdents(dir, make([]byte, 4096))
	const onlyDots = 48 // two records of 24 bytes
	return err == nil && n <= onlyDots && s.changed() == s.fresh
}

// changed is when the top of the upper layer was changed last, with its mode and
// its attributes.
func (s *shelf) changed() unix.Timespec {
	var st unix.Stat_t
	if unix.Fstatat(s.own.fd, s.state.Upper, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return unix.Timespec{}
	}
	return st.Ctim
}

// cover freezes the upper layer below a new one.
func (s *shelf) cover(ctx context.Context) error {
	return s.take(ctx, stepCover)
}

// tidy removes what an overlay needed for a layer that is no upper one any more.
// What stays is counted.
func (s *shelf) tidy(ctx context.Context, upper string) {
	if _, err := s.do(context.WithoutCancel(ctx), fence.Job{Kind: fence.JobErase, Name: fence.WorkOf(upper)}, s.own.fd); err == nil {
		s.state.Extra -= workDirs
	}
}

// copy copies the files as they are now, with the programs held still if the host
// can do that.
func (s *shelf) copy(ctx context.Context) (*frozen, error) {
	size, count, err := usedBy(s.lower)
	if err != nil {
		return nil, err
	}
	room := fence.Bounds{Size: s.bounds.Size + size, Files: s.bounds.Files + count + s.state.Extra}
	if s.bounds.Size == 0 {
		own, n, err := s.own.used()
		if err != nil {
			return nil, err
		}
		room.Size, room.Files = room.Size+own+1<<20, room.Files+n
	}
	made, err := s.do(ctx, fence.Job{Kind: fence.JobStore, Owner: s.owner, To: fence.FirstLayer, Bounds: room})
	if err != nil {
		return nil, broken(err)
	}
	to := newStore(made.Files[0])
	move, _, err := s.still(ctx)
	if err != nil {
		to.drop()
		return nil, err
	}
	done, err := s.do(context.WithoutCancel(ctx), fence.Job{Kind: fence.JobCopy, Owner: s.owner, To: fence.FirstLayer}, s.namespace, to.fd)
	move()
	if err != nil {
		to.drop()
		return nil, broken(err)
	}
	return &frozen{layers: []layer{{store: to, name: fence.FirstLayer, owner: s.owner}}, size: cove.Bytes(done.Bytes), by: s.crew, seen: &seen{}}, nil
}

// adopt makes files that are frozen what an empty workspace begins with.
func (s *shelf) adopt(ctx context.Context, f *frozen) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if f.by.maker != s.maker { // the layers of one spawner are of no use to another
		return s.receive(ctx, f)
	}
	shared, err := f.measure(ctx)
	if err != nil {
		return err
	}
	if s.bounds.Size > 0 && (shared.Size > s.bounds.Size || shared.Files > s.bounds.Files) {
		return tooSmall(s.bounds, shared)
	}
	if s.bounds.Size > 0 && shared.Files > s.bounds.Files/2 {
		return s.receive(ctx, f) // to remove one of another store takes a file, too
	}
	s.shared = shared
	c := change{upper: s.next(), lower: f.layers, extra: layerDirs + workDirs, slack: layerDirs, erase: s.state.Upper}
	if err := s.show(ctx, c); err != nil {
		return err
	}
	s.lower = holdAll(f.layers)
	s.state = shelfState{Next: s.state.Next + 1, Upper: c.upper, Extra: c.extra}
	s.fresh = s.changed()
	if err := s.resize(ctx); err != nil { // whatever else happens to the store
		return err
	}
	return s.look()
}

// receive copies files that are frozen into an empty workspace. The caller holds mu.
func (s *shelf) receive(ctx context.Context, f *frozen) error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return cove.Wrap(cove.Exhausted, err, "the host has no descriptor left").Reason(cove.ReasonCapacity)
	}
	sent := make(chan error, 1)
	go func() {
		j := fence.Job{Kind: fence.JobPack, Stack: fence.Stack{Lower: named(f.layers)}}
		_, err := f.by.do(ctx, j, layerFiles(f.layers, ends[1])...)
		_ = unix.Close(ends[1])
		sent <- err
	}()
	_, err := s.do(ctx, fence.Job{Kind: fence.JobUnpack, Owner: s.owner, To: s.state.Upper}, ends[0], s.own.fd)
	_ = unix.Close(ends[0])
	if lost := <-sent; err == nil || errors.Is(lost, fence.ErrEnded) {
		err = lost
	}
	return s.unfit(err)
}
