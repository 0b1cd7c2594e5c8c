package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// Bounds of a look.
const (
	maxNesting = 128  // folders in one another, each of which is held open
	maxNames   = 1024 // read at once
	manyNames  = 8    // for each file that is enough: files may have more than one
)

// Measure implements cove.Folders. Files with several names count once.
func (d *Dir) Measure(ctx context.Context, id cove.ID, enough cove.Filling) (cove.Filling, error) {
	name, err := begin(ctx, id)
	if err != nil {
		return cove.Filling{}, err
	}
	top, err := d.root.Open(".")
	if err != nil {
		return cove.Filling{}, fault(d.path, err)
	}
	defer func() { _ = top.Close() }()
	folder, err := enter(top, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cove.Filling{}, missing(id)
	case errors.Is(err, fs.ErrPermission): // the sandbox may close it, and goes on writing
		return cove.Filling{Unseen: true}, nil
	case err != nil:
		return cove.Filling{}, fault(d.path, err)
	}
	m := &meter{ctx: ctx, enough: enough, linked: map[uint64]bool{}}
	if err := errors.Join(m.below(folder, 0), ctx.Err()); err != nil {
		return m.Filling, fault(d.path, err)
	}
	return m.Filling, nil
}

// enter opens a folder by its name in another. Whatever stands there by now, it
// follows nothing and waits for nobody.
func enter(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

type meter struct {
	cove.Filling

	ctx    context.Context //nolint:containedctx // of the one call that it is made for
	enough cove.Filling
	names  int64           // that were looked at
	linked map[uint64]bool // files with several names, by their numbers
}

func (m *meter) done() bool {
	return m.Bytes > m.enough.Bytes || m.Files > m.enough.Files || m.Unseen || m.ctx.Err() != nil
}

// below counts what is in a folder, which it closes. An error is none of what
// sandboxes do, and says nothing about the folder.
func (m *meter) below(dir *os.File, depth int) error {
	defer func() { _ = dir.Close() }()
	for !m.done() {
		names, err := dir.Readdirnames(maxNames)
		for _, name := range names {
			if err := m.one(dir, name, depth); err != nil || m.done() {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return m.missed(err)
		}
	}
	return nil
}

func (m *meter) one(dir *os.File, name string, depth int) error {
	if m.names++; m.names > manyNames*(m.enough.Files+maxNames) {
		m.Unseen = true
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return m.missed(err)
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !isDir && st.Nlink > 1 {
		if m.linked[st.Ino] {
			return nil
		}
		m.linked[st.Ino] = true
	}
	m.Bytes += cove.Bytes(st.Blocks * 512)
	m.Files++
	if !isDir {
		return nil
	}
	if depth == maxNesting {
		m.Unseen = true
		return nil
	}
	sub, err := enter(dir, name)
	if err != nil {
		return m.missed(err)
	}
	return m.below(sub, depth+1)
}

// missed is told why something could not be looked at. What has gone meanwhile, or is
// something else by now, is counted by the next look; what is closed to us may hold
// anything; and all else is about the host.
func (m *meter) missed(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil
	case errors.Is(err, fs.ErrPermission):
		m.Unseen = true
		return nil
	}
	return err
}
