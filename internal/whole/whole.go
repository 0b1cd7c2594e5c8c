//go:build linux

// Package whole executes the program that another one carries inside: make build
// makes a lean cove, which starts fast because it can do little, and puts the
// whole one into it for everything else.
//
// The copy is kept as a file, so that only the first command writes it; where
// there is no place for one, it is a file in memory. The package must not decide
// which program is needed, nor make a directory for the copy: a command that
// leaves nothing behind still does not.
package whole

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Program is an executable.
type Program struct {
	Image []byte
	ID    string // a hash of the image
}

// mode lets the users of sandboxes execute a copy: a build without an agent of its own is
// their agent.
const mode = 0o555

// Exec replaces this process by the program, with its arguments and environment.
// The copy is kept in dir if that is a directory which only this user can change.
// It returns only with an error.
func (p Program) Exec(dir string, argv, env []string) error {
	if path, err := p.file(dir); err == nil {
		err = syscall.Exec(path, argv, env) //nolint:gosec // a copy of our own
		if !errors.Is(err, unix.EACCES) {   // a file system that executes nothing
			return os.NewSyscallError("exec", err)
		}
	}
	fd, err := p.memory()
	if err != nil {
		return err
	}
	return os.NewSyscallError("exec", syscall.Exec("/proc/self/fd/"+strconv.Itoa(fd), argv, env)) //nolint:gosec // a copy of our own
}

// errShared says that others could put something else in the copy's place.
var errShared = errors.New("the directory is not this user's alone")

// file returns the path of the copy in dir, which it makes if it is not there.
func (p Program) file(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return "", &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return "", errShared
	}
	path := filepath.Join(dir, "cove-"+p.ID)
	if unix.Lstat(path, &st) == nil && st.Mode == unix.S_IFREG|mode && st.Size == int64(len(p.Image)) && int(st.Uid) == os.Geteuid() {
		return path, nil
	}
	return path, p.write(path)
}

// write makes the copy under another name first: it appears only whole.
func (p Program) write(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "cove-*.new")
	if err != nil {
		return err
	}
	_, err = f.Write(p.Image)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	// Those of other builds: who runs one goes on, and who needs one makes it again.
	old, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "cove-"+strings.Repeat("[0-9a-f]", len(p.ID)))) // the pattern is good
	for _, name := range old {
		if name != path {
			_ = os.Remove(name) // it only takes room
		}
	}
	return nil
}

// memory returns a descriptor of a copy in memory that cannot be written to.
func (p Program) memory() (int, error) {
	fd, err := unix.MemfdCreate("cove", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "cove")
	defer func() { _ = f.Close() }()
	if _, err := f.Write(p.Image); err != nil {
		return -1, err
	}
	if err := f.Chmod(mode); err != nil {
		return -1, err
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}
