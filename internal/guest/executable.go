//go:build linux

package guest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// Executable returns the path of an executable that is an agent when it is
// started with argv[0] "cove-agent" and its link as descriptor 3: the lean one
// where the build embedded it, this executable itself otherwise. The path is
// good in this process and in what it forks.
func Executable() (string, error) { return executable() }

// imageID is a hash of the lean agent, which the build writes here.
var imageID string

// Installed is [Executable] for a process that lives so briefly that loading the
// agent into memory would take a good part of it: the executable is a file in
// dir, which only the caller's user may write to, and is made there once for
// each build.
func Installed(dir string) (string, error) {
	if len(lean) == 0 || imageID == "" {
		return Executable()
	}
	path := filepath.Join(dir, "agent-"+imageID)
	if installed(path, int64(len(lean))) {
		return path, nil
	}
	if err := install(path, lean); err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the agent cannot be written to %s", dir)
	}
	return path, nil
}

// installed reports whether the file is there, whole and ours.
func installed(path string, size int64) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode == unix.S_IFREG|0o555 && st.Size == size && int(st.Uid) == os.Geteuid()
}

// install writes the file under another name first: it appears only whole.
func install(path string, image []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "agent-*.new")
	if err != nil {
		return err
	}
	_, err = f.Write(image)
	err = errors.Join(err, f.Chmod(0o555), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Self is the path of this executable.
const Self = "/proc/self/exe"

var executable = sync.OnceValues(func() (string, error) { return load(lean) })

// load puts an executable into memory that nobody can write to, not even a
// sandbox that breaks out through /proc/self/exe.
func load(image []byte) (string, error) {
	if len(image) == 0 {
		return Self, nil
	}
	fd, err := sealed(image)
	if err != nil {
		return "", cove.Wrap(cove.Internal, err, "the agent cannot be loaded into memory")
	}
	return "/proc/self/fd/" + strconv.Itoa(fd), nil
}

// sealed returns a descriptor that stays open for as long as we live.
func sealed(image []byte) (int, error) {
	// While the file can be written to, nobody may be forked who holds it:
	// a file that somebody can write to cannot be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.MemfdCreate("cove-agent", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "cove-agent")
	defer func() { _ = f.Close() }()
	if _, err := f.Write(image); err != nil {
		return -1, err
	}
	if err := f.Chmod(0o555); err != nil {
		return -1, err
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}
