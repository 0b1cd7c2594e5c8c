package local

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// store is a file system whose directories are layers. It lives for as long as
// somebody holds it: the sandbox that it was made for, those made from its
// layers, and snapshots.
type store struct {
	fd    int
	holds atomic.Int64
}

// newStore returns one that the caller holds, of a descriptor that is the store's
// from now on.
func newStore(fd int) *store {
	s := &store{fd: fd}
	s.holds.Store(1)
	return s
}

func (s *store) hold() { s.holds.Add(1) }

func (s *store) drop() {
	if s.holds.Add(-1) == 0 {
		_ = unix.Close(s.fd)
	}
}

// used returns how many bytes and files are in it.
func (s *store) used() (size, files int64, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(s.fd, &st); err != nil {
		return 0, 0, cove.Wrap(cove.Internal, err, "the size of a workspace cannot be read")
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize, int64(st.Files - st.Ffree), nil //nolint:gosec // of a file system
}

// layer is a directory of a store that nobody changes any more.
type layer struct {
	store *store
	name  string
	owner uint32 // the user of the host that its files belong to
}

// frozen is a tree of files that stays as it is: layers, the topmost first.
type frozen struct {
	layers []layer
	size   cove.Bytes // of the stores, the changed and removed files included
	by     crew
	seen   *seen // the same for all holds
}

// seen is what there is to be seen of frozen files: changed and removed ones are left
// out. It is measured when it is needed.
type seen struct {
	mu   sync.Mutex
	took *fence.Bounds // guarded by mu; nil before
}

// measure returns how many bytes and files there are to be seen.
func (f *frozen) measure(ctx context.Context) (fence.Bounds, error) {
	f.seen.mu.Lock()
	defer f.seen.mu.Unlock()
	if f.seen.took == nil {
		took, err := f.by.measure(ctx, f.layers, 0)
		if err != nil {
			return took, err
		}
		f.seen.took = &took
	}
	return *f.seen.took, nil
}

// measure counts the files of layers that the first of them, which are over the others
// and do not count, leave to be seen.
func (c crew) measure(ctx context.Context, layers []layer, over int) (fence.Bounds, error) {
	j := fence.Job{Kind: fence.JobMeasure, Slack: int64(over), Stack: fence.Stack{Lower: named(layers)}}
	done, err := c.do(ctx, j, layerFiles(layers)...)
	return fence.Bounds{Size: done.Bytes, Files: done.Count}, broken(err)
}

// hold returns another hold on the same files.
func (f *frozen) hold() *frozen {
	return &frozen{layers: holdAll(f.layers), size: f.size, by: f.by, seen: f.seen}
}

// drop frees what nobody else holds.
func (f *frozen) drop() {
	dropAll(f.layers)
	f.layers = nil
}

func holdAll(layers []layer) []layer {
	for _, l := range layers {
		l.store.hold()
	}
	return append([]layer(nil), layers...)
}

func dropAll(layers []layer) {
	for _, l := range layers {
		l.store.drop()
	}
}

// usedBy sums up the stores of layers, each counted once.
func usedBy(layers []layer) (size, files int64, err error) {
	seen := map[*store]bool{}
	for _, l := range layers {
		if seen[l.store] {
			continue
		}
		seen[l.store] = true
		s, f, err := l.store.used()
		if err != nil {
			return 0, 0, err
		}
		size, files = size+s, files+f
	}
	return size, files, nil
}
