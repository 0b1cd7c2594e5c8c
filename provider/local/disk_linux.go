package local

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/loop"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// disks are the workspaces on the host's disk: images of file systems of their
// own where we are root, and plain directories elsewhere.
type disks struct {
	dir   string     // without links
	leave cove.Bytes // of the host's disk that images leave free
	molds *molds     // nil for directories
	why   error      // there are none
}

func openDisks(dir string, become bool, leave cove.Bytes) *disks {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return &disks{why: err}
	}
	d := &disks{dir: filepath.Join(real, "disks"), leave: leave}
	if !become {
		return d
	}
	mkfs, err := findMkfs()
	if err == nil {
		err = loop.Probe()
	}
	d.molds, d.why = &molds{dir: filepath.Join(real, "molds"), mkfs: mkfs}, err
	return d
}

// quota is how far the bounds of a workspace on disk hold.
func (d *disks) quota() cove.Quota {
	if d.molds == nil {
		return cove.Quota{Bytes: cove.Soft, Files: cove.Soft}
	}
	return cove.Quota{Bytes: cove.Hard, Files: cove.Hard}
}

// disk is one of them.
type disk struct {
	path  string
	image bool
	show  fence.Volume
	file  *os.File // what goes into the sandbox; nil when it is there

	// What is in an image before anybody uses it.
	ownBytes cove.Bytes
	ownFiles int64
}

// diskNote is what the next process must know of a workspace on disk.
type diskNote struct {
	Image bool       `json:"image,omitempty"`
	Bytes cove.Bytes `json:"bytes,omitempty"` // that are ours
	Files int64      `json:"files,omitempty"`
}

// note is what is written down of a workspace; nil if it is not on disk.
func (d *disk) note() *diskNote {
	if d == nil {
		return nil
	}
	return &diskNote{Image: d.image, Bytes: d.ownBytes, Files: d.ownFiles}
}

// again returns the workspace of a sandbox of an earlier process.
func (d *disks) again(id cove.ID, n *diskNote) *disk {
	if n == nil {
		return nil
	}
	return &disk{path: filepath.Join(d.dir, string(id)), image: n.Image, ownBytes: n.Bytes, ownFiles: n.Files}
}

// inner is the directory that a sandbox sees, if it is one of the host.
func (d *disk) inner() string { return filepath.Join(d.path, workspaceDir) }

// count corrects what the agent sees of a file system: it takes away what is ours
// of an image, and looks itself where the file system is the host's.
func (d *disk) count(u *cove.Usage) {
	if !d.image {
		seen := measure(d.inner(), used{bytes: math.MaxInt64, files: maxMeasured})
		u.Disk, u.Files = cove.Bytes(seen.bytes), seen.files
		return
	}
	u.Disk, u.Files = max(0, u.Disk-d.ownBytes), max(0, u.Files-d.ownFiles)
}

// close lets go of what was opened to make a sandbox.
func (d *disk) close() {
	if d.file != nil {
		_ = d.file.Close()
		d.file = nil
	}
}

// make makes the workspace of a sandbox, for a user of the host.
func (d *disks) make(ctx context.Context, id cove.ID, size fence.Bounds, owner uint32) (*disk, error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, undisked(err)
	}
	w := &disk{path: filepath.Join(d.dir, string(id)), image: d.molds != nil, show: fence.Volume{
		Target: cove.WorkspacePath, Within: workspaceDir, Write: true, Dir: true,
	}}
	var err error
	if w.image {
		err = d.copyMold(ctx, w, size, owner)
	} else {
		err = w.makeDir()
	}
	if errors.Is(err, os.ErrExist) {
		return nil, cove.Wrap(cove.Conflict, err, "sandbox %s exists already", id)
	}
	if err != nil {
		return nil, undisked(errors.Join(err, w.remove(context.WithoutCancel(ctx))))
	}
	return w, nil
}

// undisked says why there is no workspace.
func undisked(err error) error {
	switch {
	case cove.ReasonOf(err) == cove.ReasonDiskReserve:
		return err
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case isFull(err) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EFBIG) || errors.Is(err, unix.EDQUOT):
		return cove.Wrap(cove.Exhausted, err, "the host has no room for another workspace on disk: %s", err).Reason(cove.ReasonCapacity).
			Remedy("ask for less, end some sandboxes, or use a memory workspace")
	}
	return cove.Wrap(cove.Unavailable, err, "a workspace on disk cannot be made: %s", err).Remedy("use a memory workspace, or see cove doctor for what is missing")
}

// copyMold makes an image of a file system that takes so much and no more, and
// mounts it. All its blocks are taken from the host's disk at once: what a
// sandbox was promised, others cannot use up.
func (d *disks) copyMold(ctx context.Context, w *disk, size fence.Bounds, owner uint32) error {
	if err := d.room(size.Size); err != nil { // a mold of it would take some of the disk, too
		return err
	}
	mold, err := d.molds.open(ctx, (size.Size+block-1)/block, size.Files)
	if err != nil {
		return err
	}
	defer func() { _ = mold.Close() }()
	if err := d.copySparse(mold, w.path); err != nil {
		return err
	}
	if w.file, err = mountImage(w.path); err != nil {
		return err
	}
	w.show.Ready = true
	st, err := statfs(int(w.file.Fd()))
	if err != nil {
		return err
	}
	// The agent leaves one out, the workspace itself.
	w.ownBytes, w.ownFiles = cove.Bytes(st.Blocks-st.Bfree)*block, int64(st.Files-st.Ffree)-1 //nolint:gosec // of a file system of ours
	return os.NewSyscallError("fchownat", unix.Fchownat(int(w.file.Fd()), workspaceDir, int(owner), int(owner), unix.AT_SYMLINK_NOFOLLOW))
}

// makeDir makes a directory.
func (d *disk) makeDir() (err error) {
	if err := os.Mkdir(d.path, 0o700); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(d.inner(), 0o755), os.Chmod(d.inner(), 0o755)); err != nil { //nolint:gosec // below one that nobody else may enter
		return err
	}
	d.show.Source = d.path
	d.file, err = mount.Find(d.path)
	return err
}

// copySparse copies what is not a hole, and then takes the room of all that is.
func (d *disks) copySparse(in *os.File, to string) (err error) {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // ours
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for at := int64(0); ; {
		begin, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break
		}
		if err != nil {
			return os.NewSyscallError("lseek", err)
		}
		if at, err = unix.Seek(int(in.Fd()), begin, unix.SEEK_HOLE); err != nil {
			return os.NewSyscallError("lseek", err)
		}
		if _, err := out.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(out, io.NewSectionReader(in, begin, at-begin)); err != nil {
			return err
		}
	}
	if err := out.Truncate(info.Size()); err != nil {
		return err
	}
	if err := d.room(info.Size()); err != nil {
		return err
	}
	return os.NewSyscallError("fallocate", unix.Fallocate(int(out.Fd()), 0, 0, info.Size()))
}

// room refuses to allocate so many bytes where they are not free, or would go into the
// reserve. The kernel would take all there is before it says that it is too little.
func (d *disks) room(size int64) error {
	var host unix.Statfs_t
	if err := unix.Statfs(d.dir, &host); err != nil {
		return os.NewSyscallError("statfs", err)
	}
	free := int64(host.Bavail) * host.Bsize //nolint:gosec // of a disk
	switch {
	case size > free:
		return os.NewSyscallError("fallocate", unix.ENOSPC)
	case size > free-int64(d.leave):
		return cove.Errorf(cove.Exhausted, "the disk of the server has no room for the workspace: it takes %s, %s are free, and the last %s are for the journal and the database",
			cove.Bytes(size), cove.Bytes(free), d.leave).Reason(cove.ReasonDiskReserve).
			Remedy("ask for a smaller one or a memory workspace, or have the operator free space in the file system of COVE_HOME")
	}
	return nil
}

// remove deletes the workspace of a sandbox that has ended. What is not there is
// no error.
func (d *disk) remove(ctx context.Context) error {
	d.close()
	if !d.image {
		return removeTree(d.path)
	}
	// The kernel unmounts after the last process is gone, in its own time.
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for loop.Attached(d.path) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return cove.Wrap(cove.Timeout, ctx.Err(), "the workspace %s is still in use", filepath.Base(d.path)).Remedy("try again")
		}
	}
	if err := os.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// left returns the sandboxes of which something is there.
func (d *disks) left() ([]cove.ID, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var ids []cove.ID
	for _, e := range entries {
		if id := cove.ID(e.Name()); id.Valid() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// sweep deletes what is left of a sandbox whose holder is gone.
func (d *disks) sweep(ctx context.Context, id cove.ID) error {
	path := filepath.Join(d.dir, string(id))
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return (&disk{path: path, image: !info.IsDir()}).remove(ctx)
}

// note says why there are no workspaces on disk, if there are none.
func (d *disks) note() (string, bool) {
	if d.why == nil {
		return "", false
	}
	remedy := linux.RemedyOf(d.why)
	if remedy != "" {
		remedy = "; " + remedy
	}
	return "there are no disk workspaces: " + d.why.Error() + remedy, true
}
