package userns

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Mapping is a run of users that are others outside.
type Mapping struct{ Inside, Outside, Count uint32 }

// New makes a user namespace with these users and groups, in which no process
// is. The caller has the privileges to give them away, and closes the file, with
// which the namespace is gone if nothing uses it.
func New(users, groups []Mapping) (*os.File, error) {
	var hold [2]int
	if err := unix.Pipe2(hold[:], unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe", err)
	}
	pid, errno := forkWaiting(hold[0], hold[1])
	if errno != 0 {
		closeBoth(hold)
		return nil, fmt.Errorf("user namespace: %w", errno)
	}
	defer func() {
		closeBoth(hold)
		// Another that is forked meanwhile holds the pipe, too, and waits for us.
		_ = unix.Kill(int(pid), unix.SIGKILL)
		for {
			if _, err := unix.Wait4(int(pid), nil, 0, nil); err != unix.EINTR {
				return
			}
		}
	}()
	dir := "/proc/" + strconv.Itoa(int(pid))
	for _, m := range []struct {
		file string
		list []Mapping
	}{{"/uid_map", users}, {"/gid_map", groups}} {
		if err := os.WriteFile(dir+m.file, []byte(lines(m.list)), 0); err != nil {
			return nil, fmt.Errorf("user namespace: %w", err)
		}
	}
	f, err := os.Open(dir + "/ns/user") //nolint:gosec // of our own child
	if err != nil {
		return nil, fmt.Errorf("user namespace: %w", err)
	}
	return f, nil
}

func lines(list []Mapping) string {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "%d %d %d\n", m.Inside, m.Outside, m.Count)
	}
	return b.String()
}

// forkWaiting makes a process in a user namespace that lives until it is killed,
// or we are gone.
func forkWaiting(in, out int) (pid uintptr, errno syscall.Errno) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A handler of the runtime must not run in the child.
	all, before := ^uint64(0), uint64(0)
	sigmask(&all, &before)
	defer sigmask(&before, nil)
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	var buf [1]byte
	return cloneWaiting(uintptr(in), uintptr(out), &buf)
}

//go:noinline
//go:norace
func cloneWaiting(in, out uintptr, buf *[1]byte) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, out, 0, 0)
	_, _, _ = syscall.RawSyscall(unix.SYS_READ, in, uintptr(unsafe.Pointer(buf)), 1) //nolint:gosec // what the call takes
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// Swap returns mappings of all ids below limit to themselves, but for one that
// is another outside. The ids are below limit, which nobody is.
func Swap(inside, outside, limit uint32) []Mapping {
	if inside == outside {
		return []Mapping{{0, 0, limit}}
	}
	list := []Mapping{{inside, outside, 1}}
	next := uint32(0)
	for _, cut := range []uint32{min(inside, outside), max(inside, outside), limit} {
		if cut > next {
			list = append(list, Mapping{next, next, cut - next})
		}
		next = cut + 1
	}
	return list
}
