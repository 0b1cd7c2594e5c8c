package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
)

// Install puts a program over the calling thread, which the caller has locked,
// or over every thread of the process. It cannot be undone. The thread must
// have set no_new_privs before: the kernel demands it, since a program that
// gains privileges on exec could be fooled by calls that fail.
func Install(p Program, allThreads bool) error {
	if len(p) == 0 || len(p) > maxInstructions {
		return errors.New("seccomp: not a program")
	}
	flags := uintptr(0)
	if allThreads {
		flags = unix.SECCOMP_FILTER_FLAG_TSYNC
	}
	fprog := syscall.SockFprog{Len: uint16(len(p)), Filter: &p[0]}                                                              //nolint:gosec // bounded above
	thread, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog))) //nolint:gosec // what the call takes
	runtime.KeepAlive(p)
	switch {
	case errno == unix.EACCES:
		return fmt.Errorf("seccomp: install: no_new_privs must be set first: %w", errno)
	case errno != 0:
		return fmt.Errorf("seccomp: install: %w", errno)
	case thread != 0:
		return fmt.Errorf("seccomp: install: thread %d has a filter of its own that the others lack", thread)
	}
	return nil
}

// Probe reports as [linux.Missing] why this host cannot filter system calls.
func Probe() error {
	kill := uint32(Kill)
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&kill))) //nolint:gosec // what the call takes
	return missing(errno)
}

func missing(errno syscall.Errno) error {
	m := &linux.Missing{Feature: "system call filter", Err: errno}
	switch {
	case errno == 0:
		return nil
	case errno == unix.ENOSYS:
		m.Why, m.Remedy = "the kernel was built without CONFIG_SECCOMP_FILTER", "use a kernel that has it; those of all distributions do"
	case errno == unix.EINVAL || errno == unix.EOPNOTSUPP:
		m.Why, m.Remedy = "the kernel cannot end a whole process", "use Linux 4.14 or newer"
	default:
		m.Why, m.Remedy = "something around this process forbids seccomp", "let the container that cove runs in use the seccomp system call"
	}
	return m
}
