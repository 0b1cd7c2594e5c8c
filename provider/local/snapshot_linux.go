package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// snapshots are the files that were saved under a name. The zero value is ready.
type snapshots struct {
	mu     sync.Mutex
	kept   map[cove.ID]*snapshot // guarded by mu
	order  []cove.ID             // guarded by mu; of those with files in memory, the oldest first
	writes sync.WaitGroup        // that go on
	dir    *os.Root              // guarded by mu; nil until needed

	leave   cove.Bytes // of the disk, which must stay free
	pending cove.Bytes // of the snapshots that are being written; guarded by mu
}

// snapshot is one of them that this process made.
type snapshot struct {
	files   *frozen // nil when they are on the disk alone
	written bool
	removed bool
	failed  error // why it is not on the disk
	held    *held // where the keeper has the files until then; nil if it does not
	by      crew
}

// Names in the directory of snapshots.
const (
	snapshotDir = "snapshots"
	treeSuffix  = ".tree"
	draftSuffix = ".draft"
)

// inMemory bounds the snapshots that are kept in memory although the disk has
// them.
var inMemory = 2 * cove.GiB

// open returns the directory, without what a crash left unfinished. The caller
// holds mu.
func (k *snapshots) open(under string) (*os.Root, error) {
	if k.dir != nil {
		return k.dir, nil
	}
	path := filepath.Join(under, snapshotDir)
	err := os.Mkdir(path, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, cove.Wrap(cove.Unavailable, err, "the directory of snapshots cannot be made")
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the directory of snapshots cannot be opened")
	}
	list, err := fs.ReadDir(root.FS(), ".")
	for _, e := range list {
		if strings.HasSuffix(e.Name(), draftSuffix) {
			err = errors.Join(err, root.Remove(e.Name()))
		}
	}
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, errors.Join(err, root.Close()), "the directory of snapshots cannot be read")
	}
	k.dir = root
	return root, nil
}

// reserve takes a name.
func (k *snapshots) reserve(under string, name cove.ID) (*snapshot, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	dir, err := k.open(under)
	if err != nil {
		return nil, err
	}
	_, missing := dir.Lstat(string(name) + treeSuffix)
	if k.kept[name] != nil || missing == nil {
		return nil, cove.Errorf(cove.Conflict, "snapshot %s exists already", name)
	}
	if !errors.Is(missing, fs.ErrNotExist) {
		return nil, cove.Wrap(cove.Unavailable, missing, "the directory of snapshots cannot be read")
	}
	if k.held() > 2*inMemory {
		return nil, cove.Errorf(cove.Exhausted, "%s of snapshots are in memory and not on the disk yet", k.held()).Reason(cove.ReasonCapacity).
			Remedy("try again; if it stays so, run cove doctor, which says why they cannot be written")
	}
	s := &snapshot{}
	if k.kept == nil {
		k.kept = map[cove.ID]*snapshot{}
	}
	k.kept[name] = s
	return s, nil
}

// save keeps the files of a workspace under a name: in memory at once, and on the
// disk soon.
func (p *Provider) save(ctx context.Context, name cove.ID, from *shelf) (cove.Bytes, error) {
	k := &p.saved
	s, err := k.reserve(p.cfg.Dir, name)
	if err != nil {
		return 0, err
	}
	files, err := from.freeze(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		if s.held, err = p.holdSnapshot(ctx, name, files, from.crew); err != nil {
			files.drop()
		}
	}
	if err != nil {
		delete(k.kept, name)
		return 0, err
	}
	k.keep(ctx, name, s, files, from.crew)
	return files.size, nil
}

// keep keeps files under a name, and has them written. The caller holds mu.
func (k *snapshots) keep(ctx context.Context, name cove.ID, s *snapshot, files *frozen, by crew) {
	s.files, s.by = files, by
	k.order = append(k.order, name)
	own := files.hold()
	k.writes.Go(func() {
		k.write(context.WithoutCancel(ctx), by, name, s, own)
		k.mu.Lock()
		defer k.mu.Unlock()
		if s.written || s.removed { // otherwise the next process tries again
			s.release()
		}
	})
}

// write puts the files of a snapshot on the disk.
func (k *snapshots) write(ctx context.Context, by crew, name cove.ID, s *snapshot, files *frozen) {
	defer files.drop()
	k.mu.Lock()
	dir, gone := k.dir, s.removed
	if !gone {
		s.failed = k.room(files.size)
	}
	if gone || s.failed != nil {
		k.mu.Unlock()
		return
	}
	k.pending += files.size
	k.mu.Unlock()
	draft := string(name) + draftSuffix
	err := pack(ctx, by, dir, draft, files)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending -= files.size
	if err == nil && !s.removed {
		err = dir.Rename(draft, string(name)+treeSuffix)
	}
	if err != nil || s.removed {
		s.failed = errors.Join(err, dir.Remove(draft))
		return
	}
	s.failed = syncDir(dir)
	s.written = s.failed == nil
	k.shed()
}

// room refuses to write so many bytes where they would go into the reserve. The caller
// holds mu.
func (k *snapshots) room(size cove.Bytes) error {
	dir, err := k.dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	st, err := statfs(int(dir.Fd()))
	if err != nil {
		return err
	}
	if free := cove.Bytes(st.Bavail) * cove.Bytes(st.Bsize); free-k.leave-k.pending < size { //nolint:gosec // of a disk
		return os.NewSyscallError("write", unix.ENOSPC)
	}
	return nil
}

func pack(ctx context.Context, by crew, dir *os.Root, name string, files *frozen) error {
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	j := fence.Job{Kind: fence.JobPack, Stack: fence.Stack{Lower: named(files.layers)}}
	_, err = by.do(ctx, j, layerFiles(files.layers, int(f.Fd()))...)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// held is how much of files is in memory. The caller holds mu.
func (k *snapshots) held() (sum cove.Bytes) {
	for _, name := range k.order {
		sum += k.kept[name].files.size
	}
	return sum
}

// shed lets go of the oldest files that the disk has, too, when there are too
// many. The caller holds mu.
func (k *snapshots) shed() {
	sum := k.held()
	k.order = slices.DeleteFunc(k.order, func(name cove.ID) bool {
		s := k.kept[name]
		if sum <= inMemory || !s.written {
			return false
		}
		sum -= s.files.size
		s.files.drop()
		s.files = nil
		return true
	})
}

// furnish returns what gives a new sandbox its first files; nil if there are to
// be none.
func (p *Provider) furnish(ctx context.Context, spec cove.Spec) (func(context.Context, *shelf) error, error) {
	if spec.Snapshot == "" {
		return nil, ctx.Err()
	}
	files, f, err := p.saved.get(p.cfg.Dir, spec.Snapshot)
	switch {
	case err != nil:
		return nil, err
	case f != nil:
		return func(ctx context.Context, s *shelf) error {
			defer func() { _ = f.Close() }()
			return s.unpack(ctx, f)
		}, nil
	}
	return func(ctx context.Context, s *shelf) error {
		defer files.drop()
		return s.adopt(ctx, files)
	}, nil
}

// get returns the files of a snapshot, or the file that they are in. The caller
// drops or closes it.
func (k *snapshots) get(under string, name cove.ID) (*frozen, *os.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.kept[name]; s != nil && s.files != nil {
		return s.files.hold(), nil, nil
	}
	dir, err := k.open(under)
	if err != nil {
		return nil, nil, err
	}
	f, err := dir.Open(string(name) + treeSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, cove.Errorf(cove.NotFound, "snapshot %s does not exist, or was cut short before it was on the disk", name)
	}
	if err != nil {
		return nil, nil, cove.Wrap(cove.Unavailable, err, "snapshot %s cannot be read", name)
	}
	return nil, f, nil
}

// unpack fills an empty workspace from a file.
func (s *shelf) unpack(ctx context.Context, f *os.File) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	j := fence.Job{Kind: fence.JobUnpack, Owner: s.owner, To: s.state.Upper}
	_, err := s.do(ctx, j, int(f.Fd()), s.own.fd)
	return s.unfit(err)
}

// RemoveSnapshot implements [cove.SnapshotKeeper].
func (p saving) RemoveSnapshot(ctx context.Context, name cove.ID) error {
	if err := ctx.Err(); err != nil || !name.Valid() {
		return err
	}
	if err := p.books.Enter(); err != nil {
		return err
	}
	defer p.books.Leave()
	k := &p.saved
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.kept[name]; s != nil {
		if s.files == nil && !s.written {
			return cove.Errorf(cove.Conflict, "snapshot %s is being made", name)
		}
		s.removed = true
		if s.failed != nil { // nobody writes it any more
			s.release()
		}
		if s.files != nil {
			s.files.drop()
		}
		delete(k.kept, name)
		k.order = slices.DeleteFunc(k.order, func(n cove.ID) bool { return n == name })
	}
	dir, err := k.open(p.cfg.Dir)
	if err != nil {
		return err
	}
	if err := dir.Remove(string(name) + treeSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cove.Wrap(cove.Unavailable, err, "snapshot %s cannot be removed", name)
	}
	return nil
}

// unwritten says which snapshots would not outlive this process.
func (k *snapshots) unwritten() (notes []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range k.order {
		if err := k.kept[name].failed; err != nil {
			notes = append(notes, "snapshot "+string(name)+" is in memory alone: "+err.Error())
		}
	}
	return notes
}

// close waits until all is on the disk, and frees the memory.
func (k *snapshots) close() {
	k.writes.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.kept {
		if s.files != nil {
			s.files.drop()
		}
	}
	k.kept, k.order = nil, nil
	if k.dir != nil {
		_ = k.dir.Close()
		k.dir = nil
	}
}
