package fence

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/mount"
)

// store makes a file system for layers.
func (t Tools) store(j *Job) (Done, error) {
	owner := int(j.Owner)
	if !t.Become {
		owner = 0
	}
	tree, err := newStore(j.Bounds, j.To, owner)
	if err != nil {
		return Done{}, err
	}
	defer func() { _ = tree.Close() }()
	fd, err := unix.FcntlInt(tree.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return Done{}, os.NewSyscallError("fcntl", err)
	}
	return Done{Files: []int{fd}}, nil
}

// newStore makes a file system in memory with one empty layer.
func newStore(n Bounds, layer string, owner int) (*os.File, error) {
	// The layer itself is a file, too.
	tree, err := mount.Tmpfs{Size: n.Size, Files: n.Files + 1, Mode: 0o700, Flags: placeFlags}.New()
	if err != nil {
		return nil, err
	}
	err = mkdir(int(tree.Fd()), layer)
	if err == nil {
		err = unix.Fchmodat(int(tree.Fd()), layer, 0o755, 0)
	}
	if err == nil && owner != 0 {
		err = unix.Fchownat(int(tree.Fd()), layer, owner, owner, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return nil, errors.Join(err, tree.Close())
	}
	return tree, nil
}

// copy copies what a sandbox sees, all through a pipe: whatever can be written
// down can be copied.
func (t Tools) copy(j *Job, ns, store int) (Done, error) {
	from := -1
	err := apart(func() (err error) {
		if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("setns", err)
		}
		from, err = openDir(unix.AT_FDCWD, workspace)
		return err
	})
	if err != nil {
		return Done{}, err
	}
	defer func() { _ = unix.Close(from) }()
	r, w := io.Pipe()
	sent := make(chan int64, 1)
	go func() {
		n, err := pack(from, w)
		_ = w.CloseWithError(err)
		sent <- n
	}()
	err = t.unpackInto(r, store, j)
	_ = r.CloseWithError(err)
	return Done{Bytes: <-sent}, err
}

func (t Tools) pack(j *Job, out int, lower []int) (Done, error) {
	root, err := t.view(j, lower)
	if err != nil {
		return Done{}, err
	}
	defer func() { _ = unix.Close(root) }()
	n, err := pack(root, descriptor(out))
	return Done{Bytes: n}, err
}

func (t Tools) unpack(j *Job, in, store int) (Done, error) {
	return Done{}, t.unpackInto(descriptor(in), store, j)
}

func (t Tools) unpackInto(r io.Reader, store int, j *Job) error {
	root, err := openDir(store, j.To)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(root) }()
	owner := -1
	if t.Become {
		owner = int(j.Owner)
	}
	return unpack(r, root, owner)
}

// descriptor reads and writes one that is somebody else's to close.
type descriptor int

func (d descriptor) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (d descriptor) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(int(d), b[done:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, os.NewSyscallError("write", err)
		}
		done += n
	}
	return done, nil
}

func resize(store int, to Bounds) error {
	fd, err := unix.FcntlInt(uintptr(store), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	tree := os.NewFile(uintptr(fd), "store")
	defer func() { _ = tree.Close() }()
	return mount.Tmpfs{Size: to.Size, Files: to.Files}.ResizeTree(tree)
}

// erase removes a layer, and gives its store the bounds that it should have.
func (t Tools) erase(j *Job, store int) error {
	var err error
	if j.Name != "" {
		err = erase(store, j.Name)
	}
	if j.Bounds.Size > 0 {
		err = errors.Join(err, resize(store, j.Bounds))
	}
	return err
}
