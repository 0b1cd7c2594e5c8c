package fence

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// errDamaged says that what was written down cannot be read.
var errDamaged = errors.New("the tree that was written down is damaged")

// unpacker makes a tree that was written down.
type unpacker struct {
	root, owner int
	in          *bufio.Reader
	buf         []byte
	parent      int // open directory of
	at          string
	dirs        []entry // whose times are set at the end
}

// unpack makes what [pack] wrote in an empty directory. Everything belongs to the
// owner; -1 is the caller.
func unpack(r io.Reader, root, owner int) error {
	u := &unpacker{root: root, owner: owner, in: bufio.NewReaderSize(r, piece), buf: make([]byte, piece), parent: -1}
	defer func() { u.leave() }()
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(u.in, head); err != nil || string(head) != magic {
		return errors.Join(errDamaged, err)
	}
	count := uint64(0)
	for ; ; count++ {
		e, err := u.next()
		if err != nil {
			return err
		}
		if e.path == "" {
			break
		}
		if err := u.one(&e); err != nil {
			return &os.PathError{Op: "make", Path: e.path, Err: err}
		}
	}
	if n, err := binary.ReadUvarint(u.in); err != nil || n != count {
		return errors.Join(errDamaged, err)
	}
	u.leave()
	return u.finish()
}

// next reads an entry; one without a path is the end.
func (u *unpacker) next() (entry, error) {
	n, err := binary.ReadUvarint(u.in)
	if err != nil || n > maxEntry {
		return entry{}, errors.Join(errDamaged, err)
	}
	if n == 0 {
		return entry{}, nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(u.in, b); err != nil {
		return entry{}, errors.Join(errDamaged, err)
	}
	e, err := decodeEntry(b)
	if err != nil || !filepath.IsLocal(e.path) || e.same != "" && !filepath.IsLocal(e.same) {
		return entry{}, errors.Join(errDamaged, err)
	}
	return e, nil
}

func (u *unpacker) leave() {
	if u.parent >= 0 {
		_ = unix.Close(u.parent)
		u.parent = -1
	}
}

// enter opens the directory of an entry, which in general is open already.
func (u *unpacker) enter(name string) (string, error) {
	dir, base := path.Dir(name), path.Base(name)
	if u.parent >= 0 && u.at == dir {
		return base, nil
	}
	u.leave()
	fd, err := below(u.root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return "", err
	}
	u.parent, u.at = fd, dir
	return base, nil
}

func (u *unpacker) one(e *entry) error {
	base, err := u.enter(e.path)
	if err != nil {
		return err
	}
	mode := e.mode & 0o7777
	switch e.mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if e.path != "." {
			if err := unix.Mkdirat(u.parent, base, 0o700); err != nil {
				return err
			}
		}
		u.dirs = append(u.dirs, *e)
		return nil
	case unix.S_IFREG:
		if e.same != "" {
			return u.link(e.same, base)
		}
		return u.file(base, e)
	case unix.S_IFLNK:
		err = unix.Symlinkat(e.link, u.parent, base)
	case unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFCHR:
		// Of devices there is only the one that everybody may make.
		if err = unix.Mknodat(u.parent, base, e.mode&unix.S_IFMT|mode, 0); err == nil {
			err = unix.Fchmodat(u.parent, base, mode, 0)
		}
	default:
		return errDamaged
	}
	if err == nil && u.owner >= 0 {
		err = unix.Fchownat(u.parent, base, u.owner, u.owner, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil {
		err = setTimes(u.parent, base, e.times())
	}
	return err
}

// link gives a file that was made already another name.
func (u *unpacker) link(same, base string) error {
	dir, err := below(u.root, path.Dir(same), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	return unix.Linkat(dir, path.Base(same), u.parent, base, 0)
}

func (t *entry) times() *unix.Stat_t {
	ts := unix.Timespec{Sec: t.seconds, Nsec: t.nanos}
	return &unix.Stat_t{Atim: ts, Mtim: ts}
}

// file makes a regular file of its pieces.
func (u *unpacker) file(base string, e *entry) error {
	fd, err := unix.Openat(u.parent, base, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := binary.ReadUvarint(u.in)
		if err != nil || n > piece {
			return errors.Join(errDamaged, err)
		}
		if n == 0 {
			break
		}
		at, err := binary.ReadUvarint(u.in)
		if err != nil || at > 1<<62 {
			return errors.Join(errDamaged, err)
		}
		if _, err := io.ReadFull(u.in, u.buf[:n]); err != nil {
			return errors.Join(errDamaged, err)
		}
		if err := writeAt(fd, u.buf[:n], int64(at)); err != nil {
			return err
		}
	}
	if err := unix.Ftruncate(fd, e.size); err != nil {
		return err
	}
	return u.settle(fd, e)
}

func writeAt(fd int, b []byte, at int64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(fd, b, at)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

// settle gives an open file what it had.
func (u *unpacker) settle(fd int, e *entry) error {
	for _, a := range e.attributes {
		if err := unix.Fsetxattr(fd, a.name, []byte(a.value), 0); err != nil {
			return err
		}
	}
	if u.owner >= 0 {
		if err := unix.Fchown(fd, u.owner, u.owner); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(fd, e.mode&0o7777); err != nil {
		return err
	}
	return setTimes(fd, "", e.times())
}

// finish sets what making files in a directory changes.
func (u *unpacker) finish() error {
	for i := range u.dirs {
		e := &u.dirs[len(u.dirs)-1-i]
		fd, err := below(u.root, e.path, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		err = u.settle(fd, e)
		_ = unix.Close(fd)
		if err != nil {
			return &os.PathError{Op: "make", Path: e.path, Err: err}
		}
	}
	return nil
}
