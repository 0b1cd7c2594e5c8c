package forkexec

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/longcall"
	"github.com/cove-sandbox/cove/internal/linux/vfork"
)

// Start starts a program and returns its pid; the caller reaps it. When it
// fails with an [Error], no process is left. The program is a child of the
// calling thread as far as filters and capabilities go: a caller that locked up
// one thread only must call from there.
func Start(c *Command) (pid int, err error) {
	pid, handle, err := StartHandled(c)
	if err == nil {
		_ = unix.Close(handle)
	}
	return pid, err
}

// StartHandled is [Start] with a handle of the process: a descriptor that is
// readable when the program has ended, and that the caller closes.
func StartHandled(c *Command) (pid, handle int, err error) {
	p, err := c.plan()
	if err != nil {
		return 0, -1, err
	}
	// Nobody may have a descriptor open that is not close-on-exec yet.
	syscall.ForkLock.Lock()
	child, errno := spawn(p)
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(p)
	if errno != 0 {
		return 0, -1, &Error{StageFork, errno}
	}
	pid, handle = int(child), int(p.handle)
	if p.errno == 0 {
		return pid, handle, nil
	}
	_ = unix.Close(handle)
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			return 0, -1, &Error{p.stage, p.errno}
		}
	}
}

// spawn makes a child that shares our memory, and is alone on the processor
// with it: the parent sleeps until the child execs or exits. So the child never
// returns from this frame, and the parent leaves it at once. What is called
// here must not grow the stack, allocate, or be watched by the race detector.
// Others have the processor meanwhile: an exec takes longer than all else here.
//
//go:noinline
//go:norace
//go:nocheckptr
func spawn(p *plan) (pid uintptr, errno syscall.Errno) {
	longcall.Enter()
	vfork.Before()
	pid, errno = vfork.Call(unix.SYS_CLONE, unix.CLONE_VFORK|unix.CLONE_VM|unix.CLONE_PIDFD|uintptr(unix.SIGCHLD), 0, uintptr(unsafe.Pointer(&p.handle))) //nolint:gosec // what the call takes
	if errno != 0 || pid != 0 {
		vfork.After()
		longcall.Leave()
		return pid, errno
	}
	if deaf {
		dispose(unix.SIGPIPE, byDefault)
	} else {
		vfork.InChild()
	}
	p.run()
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}

// run is the child. It comes back only when a step failed.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (p *plan) run() {
	if p.confined {
		p.stage = StageConfinement
		if p.errno = p.confine(); p.errno != 0 {
			return
		}
	}
	p.stage = StageDescriptors
	if p.errno = p.placeFiles(); p.errno != 0 {
		return
	}
	none := uint64(0)
	if _, _, p.errno = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&none)), 0, unsafe.Sizeof(none), 0, 0); p.errno != 0 { //nolint:gosec // what the call takes
		return
	}
	if p.errno = p.join(); p.errno != 0 {
		return
	}
	p.stage = StageLimits
	for i := range p.limits {
		l := &p.limits[i]
		if _, _, p.errno = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(l.Resource), uintptr(unsafe.Pointer(&l.Soft)), 0, 0, 0); p.errno != 0 { //nolint:gosec // what the call takes
			return
		}
	}
	if p.user != 0 {
		p.stage = StageUser
		if _, _, p.errno = syscall.RawSyscall(unix.SYS_SETRESUID, p.user, p.user, p.user); p.errno != 0 {
			return
		}
	}
	if p.dir != nil {
		p.stage = StageDirectory
		if _, _, p.errno = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(p.dir)), 0, 0); p.errno != 0 { //nolint:gosec // what the call takes
			return
		}
	}
	p.stage = StageExec
	_, _, p.errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(p.path)), uintptr(unsafe.Pointer(&p.argv[0])), uintptr(unsafe.Pointer(&p.env[0]))) //nolint:gosec // what the call takes
}

// join gives the child its place among processes: a group, a session, a terminal, and
// its own orphans.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (p *plan) join() syscall.Errno {
	p.stage = StageSession
	if p.group {
		if _, _, p.errno = syscall.RawSyscall(unix.SYS_SETPGID, 0, 0, 0); p.errno != 0 {
			return p.errno
		}
	}
	if p.session {
		if _, _, p.errno = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); p.errno != 0 {
			return p.errno
		}
	}
	if p.terminal {
		p.stage = StageTerminal
		if _, _, p.errno = syscall.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0); p.errno != 0 {
			return p.errno
		}
	}
	if p.reaper {
		p.stage = StageReaper
		if _, _, p.errno = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0); p.errno != 0 {
			return p.errno
		}
	}
	return 0
}

// confine puts up landlock and the filter. It comes first, because the descriptor of
// the ruleset is closed with all others; what follows needs nothing that they refuse.
//
//go:nosplit
//go:norace
func (p *plan) confine() syscall.Errno {
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, p.ruleset, 0, 0); errno != 0 {
		return errno
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p.filter))) //nolint:gosec // what the call takes
	return errno
}

// placeFiles makes the files 0, 1, 2, … and closes everything else.
//
//go:nosplit
//go:norace
func (p *plan) placeFiles() syscall.Errno {
	next := p.above
	// What is below its place would be overwritten before its turn.
	for i := range p.files {
		if p.files[i] < i {
			if _, _, errno := syscall.RawSyscall(unix.SYS_DUP3, uintptr(p.files[i]), uintptr(next), unix.O_CLOEXEC); errno != 0 {
				return errno
			}
			p.files[i] = next
			next++
		}
	}
	for i := range p.files {
		var errno syscall.Errno
		if p.files[i] == i {
			_, _, errno = syscall.RawSyscall(unix.SYS_FCNTL, uintptr(i), unix.F_SETFD, 0)
		} else {
			_, _, errno = syscall.RawSyscall(unix.SYS_DUP3, uintptr(p.files[i]), uintptr(i), 0)
		}
		if errno != 0 {
			return errno
		}
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(len(p.files)), ^uintptr(0)>>32, 0)
	return errno
}
