package initproc

import (
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/vfork"
)

// outcome is where a child says which step was refused.
type outcome struct {
	step  int32 // counted from 1; 0 when nothing was refused
	errno int32
	pidfd int32 // where the kernel puts it for the parent
}

// cloneArgs is struct clone_args. Without a name are what we never set: where
// numbers of threads go, the stack, the thread's own storage, a number to have.
type cloneArgs struct {
	flags, pidfd, _, _, exitSignal, _, _, _, _, _, cgroup uint64
}

// Start makes the process and returns when the program runs, or an [Error]. The
// calling thread must be locked if its namespaces are not those of all threads,
// and with Become or Proc it must be thrown away afterwards.
func Start(c *Command) (Process, error) {
	s, err := c.plan()
	if err != nil {
		return Process{}, err
	}
	p, err := c.start(s)
	if err != nil || !c.Proc {
		return p, err
	}
	if err := mountProc(p); err != nil {
		p.End()
		return Process{}, err
	}
	return p, nil
}

// changing is held while a thread changes users and its child maps itself: the
// kernel notes the change for the memory that all of them share, and whoever
// maps himself at that moment would no longer own his own /proc.
var changing sync.Mutex

// start becomes the user, if it is to, and makes the process.
func (c *Command) start(s *script) (Process, error) {
	if c.Become {
		changing.Lock()
		defer changing.Unlock()
		if err := become(c.Outside); err != nil {
			return Process{}, err
		}
	}
	// The user namespace is made with the process: who shares his memory cannot
	// have one of his own later. And sharing is what makes the start fast.
	flags := uint64(unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD | unix.CLONE_NEWUSER | unix.CLONE_NEWPID)
	args := &cloneArgs{flags: flags, exitSignal: uint64(unix.SIGCHLD)}
	if c.Group >= 0 {
		args.flags |= unix.CLONE_INTO_CGROUP
		args.cgroup = uint64(c.Group)
	}
	return s.start(args)
}

// become makes the calling thread another user, with the privileges it had: the
// process that is made from it owns its user namespace, and can map itself.
func become(id uint32) error {
	const keep = 1 << 2 // SECBIT_NO_SETUID_FIXUP: privileges do not go by users
	for _, st := range []struct {
		name   string
		number uintptr
		args   [3]uintptr
	}{
		{"keep the privileges", unix.SYS_PRCTL, [3]uintptr{unix.PR_SET_SECUREBITS, keep}},
		{"drop the groups", unix.SYS_SETGROUPS, [3]uintptr{}},
		{"change the group", unix.SYS_SETRESGID, [3]uintptr{uintptr(id), uintptr(id), uintptr(id)}},
		{"change the user", unix.SYS_SETRESUID, [3]uintptr{uintptr(id), uintptr(id), uintptr(id)}},
	} {
		// Raw: of this thread alone.
		if _, _, errno := syscall.RawSyscall(st.number, st.args[0], st.args[1], st.args[2]); errno != 0 {
			return &Error{Step: st.name, Errno: errno}
		}
	}
	return nil
}

// start makes a process that shares our memory and runs the script.
func (s *script) start(args *cloneArgs) (Process, error) {
	out := &s.outcome
	args.pidfd = uint64(address(&out.pidfd))
	// Nobody may have a descriptor open that is not close-on-exec yet.
	syscall.ForkLock.Lock()
	pid, errno := fork(args, s)
	vfork.After()
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(s)
	if errno != 0 {
		return Process{}, &Error{Step: "clone", Errno: errno}
	}
	p := Process{PID: int(pid), FD: int(out.pidfd)}
	if out.step == 0 {
		return p, nil
	}
	reap(p)
	return Process{}, &Error{Step: s.names[out.step-1], Errno: syscall.Errno(out.errno)} //nolint:gosec // one that the child was given
}

// End kills the process and all others of its pid namespace, and reaps it.
func (p Process) End() {
	_ = unix.PidfdSendSignal(p.FD, unix.SIGKILL, nil, 0)
	reap(p)
}

func reap(p Process) {
	for {
		if _, err := unix.Wait4(p.PID, nil, 0, nil); err != unix.EINTR {
			break
		}
	}
	_ = unix.Close(p.FD)
}

func errnoOf(err error) syscall.Errno {
	if errno, ok := err.(syscall.Errno); ok { //nolint:errorlint // system calls return it bare
		return errno
	}
	return syscall.EIO
}

// fork makes a child that shares our memory, and is alone on the processor with
// it: the parent sleeps until the child execs or exits. So the child never
// returns from this frame, and the parent leaves it at once. What is called
// here must not grow the stack, allocate, or be watched by the race detector.
//
//go:noinline
//go:norace
//go:nocheckptr
func fork(args *cloneArgs, s *script) (pid uintptr, errno syscall.Errno) {
	vfork.Before()
	pid, errno = vfork.Call(unix.SYS_CLONE3, uintptr(unsafe.Pointer(args)), unsafe.Sizeof(*args), 0) //nolint:gosec // what the call takes
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	vfork.InChild()
	run(s)
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}

// run is the child. It comes back only when a step was refused.
//
//go:nosplit
//go:norace
//go:nocheckptr
func run(s *script) {
	last := uintptr(0)
	for i := range s.steps {
		st := &s.steps[i]
		if st.useLast {
			st.args[0] = last
		}
		r, _, errno := syscall.RawSyscall6(st.number, st.args[0], st.args[1], st.args[2], st.args[3], st.args[4], st.args[5])
		if errno != 0 && errno != st.allowed[0] && errno != st.allowed[1] {
			s.outcome.errno = int32(errno) //nolint:gosec // errnos are small
			s.outcome.step = int32(i) + 1
			return
		}
		last = r
	}
}

// Probe reports as [linux.Missing] why this kernel cannot start processes so.
func Probe() error {
	// No arguments at all: a kernel that has the call says that they are wrong.
	_, _, errno := syscall.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
	switch errno { //nolint:exhaustive // all others mean the same
	case unix.EINVAL, unix.EFAULT:
		return nil
	case unix.ENOSYS:
		return &linux.Missing{Feature: "starting sandboxes", Why: "the kernel has no clone3, or something around this process hides it", Remedy: "use Linux 5.9 or newer; in a container, let it use clone3", Err: errno}
	}
	return &linux.Missing{Feature: "starting sandboxes", Why: "something around this process forbids clone3", Remedy: "let the container that cove runs in use clone3", Err: errno}
}
