//go:build linux

package agent

import (
	"os"

	"golang.org/x/sys/unix"
)

// ownFile is a file that is read for an archive. Its mode need not let its owner
// read it: then the owner, who may change that, does so meanwhile.
type ownFile struct {
	*os.File

	st   unix.Stat_t // with the mode that it had
	lent bool
}

func openOwn(dir int, name string, seen *unix.Stat_t) (*ownFile, error) {
	fd, err := openAndEnter(dir, name)
	lent := err == unix.EACCES && int(seen.Uid) == os.Geteuid() //nolint:errorlint // what the call returns
	if lent {
		// A link in its place would be followed, but only to what is the user's.
		if err := unix.Fchmodat(dir, name, seen.Mode&0o7777|0o500, 0); err != nil {
			return nil, err
		}
		if fd, err = openAndEnter(dir, name); err != nil {
			_ = unix.Fchmodat(dir, name, seen.Mode&0o7777, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(fd, false)
	f := &ownFile{File: os.NewFile(uintptr(fd), name), lent: lent}
	if err := unix.Fstat(fd, &f.st); err != nil {
		f.close()
		return nil, err
	}
	if lent {
		f.st.Mode = f.st.Mode&unix.S_IFMT | seen.Mode&0o7777
	}
	return f, nil
}

// openAndEnter opens a file, and a directory only if what is in it can be opened.
func openAndEnter(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = ordinary(fd)
	var st unix.Stat_t
	if err == nil && unix.Fstatat(fd, ".", &st, 0) == unix.EACCES {
		err = unix.EACCES
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// close gives the file its mode back.
func (f *ownFile) close() {
	if f.lent {
		_ = unix.Fchmod(int(f.Fd()), f.st.Mode&0o7777)
	}
	_ = f.Close()
}
