package userns

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Report is what the calling user may do: nil, or a [linux.Missing] with the
// cause and the remedy. Each holds only if those before it do.
type Report struct {
	Create error // a user namespace, with pid, mount, network, ipc and uts namespaces
	Map    error // its own user into it
	Mount  error // file systems in it
	Proc   error // a /proc of its own in it
}

// steps of the trial, in their order.
const (
	stepCreate = iota
	stepMap
	stepMount
	stepProc
	steps
)

// Probe makes namespaces in a process of its own, which is gone when Probe
// returns, and tries what a sandbox needs. It changes nothing else.
func Probe() Report { return explain(try(), gather("/")) }

// explain turns what the kernel said at each step into causes and remedies.
func explain(said [steps]syscall.Errno, f facts) Report {
	var r Report
	for step, to := range []*error{&r.Create, &r.Map, &r.Mount, &r.Proc} {
		if said[step] != 0 {
			*to = f.missing(step, said[step])
		}
	}
	return r
}

// namespaces are those that a sandbox has.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// notTried is what later steps say when an earlier one failed.
const notTried = unix.ECANCELED

// try returns what the kernel said at each step.
func try() (said [steps]syscall.Errno) {
	for i := range said {
		said[i] = notTried
	}
	var down, up [2]int // to the child, and back
	if err := unix.Pipe2(down[:], unix.O_CLOEXEC); err != nil {
		said[stepCreate] = errnoOf(err)
		return said
	}
	defer closeBoth(down)
	if err := unix.Pipe2(up[:], unix.O_CLOEXEC); err != nil {
		said[stepCreate] = errnoOf(err)
		return said
	}
	pid, errno := newTrial(down[0], up[1]).fork()
	// Only the child must hold it now, so that its death ends our reading.
	_ = unix.Close(up[1])
	defer func() { _ = unix.Close(up[0]) }()
	if said[stepCreate] = errno; errno != 0 {
		return said
	}
	said[stepMap] = mapSelf(int(pid))
	mapped := []byte{0}
	if said[stepMap] == 0 {
		mapped[0] = 1
	}
	_, _ = unix.Write(down[1], mapped)
	var answer [2]byte
	if n, _ := unix.Read(up[0], answer[:]); n == len(answer) {
		said[stepMount], said[stepProc] = syscall.Errno(answer[0]), syscall.Errno(answer[1])
	}
	for {
		if _, err := unix.Wait4(int(pid), nil, 0, nil); err != unix.EINTR {
			return said
		}
	}
}

func closeBoth(p [2]int) {
	_ = unix.Close(p[0])
	_ = unix.Close(p[1])
}

func errnoOf(err error) syscall.Errno {
	if e, ok := err.(syscall.Errno); ok { //nolint:errorlint // system calls return it as it is
		return e
	}
	return unix.EIO
}

// mapSelf makes the calling user the root of the namespace of a process.
func mapSelf(pid int) syscall.Errno {
	dir := "/proc/" + strconv.Itoa(pid)
	// Without this an ordinary user may not map his group.
	_ = os.WriteFile(dir+"/setgroups", []byte("deny"), 0)
	for file, id := range map[string]int{"/uid_map": os.Geteuid(), "/gid_map": os.Getegid()} {
		if err := os.WriteFile(dir+file, fmt.Appendf(nil, "0 %d 1\n", id), 0); err != nil {
			if e, ok := err.(*os.PathError); ok { //nolint:errorlint // os returns it as it is
				return errnoOf(e.Err)
			}
			return unix.EIO
		}
	}
	return 0
}

// trial holds all that the child needs, which may neither allocate nor touch
// the runtime: it has a copy of our memory, but none of our other threads.
type trial struct {
	in, out           uintptr
	tmpfs, proc, root *byte
	answer            [2]byte
	said              [1]byte
}

func newTrial(in, out int) *trial {
	text := []byte("tmpfs\x00proc\x00/\x00")
	return &trial{in: uintptr(in), out: uintptr(out), tmpfs: &text[0], proc: &text[6], root: &text[11]}
}

// fork makes the child and returns in the parent only.
func (t *trial) fork() (pid uintptr, errno syscall.Errno) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A handler of the runtime must not run in the child.
	all, before := ^uint64(0), uint64(0)
	sigmask(&all, &before)
	defer sigmask(&before, nil)
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	return t.clone()
}

func sigmask(set, old *uint64) {
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), unsafe.Sizeof(*set), 0, 0) //nolint:gosec // what the call takes
}

//go:noinline
//go:norace
func (t *trial) clone() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, namespaces|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	t.child()
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// child tries the mounts, over the root of its own namespace, when it was told
// that it is mapped.
//
//go:nosplit
//go:norace
func (t *trial) child() {
	_, _, errno := syscall.RawSyscall(unix.SYS_READ, t.in, uintptr(unsafe.Pointer(&t.said)), 1) //nolint:gosec // what the call takes
	if errno != 0 || t.said[0] != 1 {
		return
	}
	slash := uintptr(unsafe.Pointer(t.root)) //nolint:gosec // what the calls take
	_, _, errno = syscall.RawSyscall6(unix.SYS_MOUNT, 0, slash, 0, unix.MS_REC|unix.MS_PRIVATE, 0, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall6(unix.SYS_MOUNT, uintptr(unsafe.Pointer(t.tmpfs)), slash, uintptr(unsafe.Pointer(t.tmpfs)), 0, 0, 0) //nolint:gosec // what the call takes
	}
	t.answer[0] = byte(errno)                                                                                                           //nolint:gosec // error numbers of Linux fit
	_, _, errno = syscall.RawSyscall6(unix.SYS_MOUNT, uintptr(unsafe.Pointer(t.proc)), slash, uintptr(unsafe.Pointer(t.proc)), 0, 0, 0) //nolint:gosec // what the call takes
	t.answer[1] = byte(errno)                                                                                                           //nolint:gosec // error numbers of Linux fit
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, t.out, uintptr(unsafe.Pointer(&t.answer)), 2)                                          //nolint:gosec // what the call takes
}
