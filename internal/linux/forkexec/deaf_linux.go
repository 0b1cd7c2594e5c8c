package forkexec

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigaction is the kernel's own form, which is the same on amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// What a signal does without a handler.
const (
	byDefault  uintptr = 0 // SIG_DFL
	notAtAll   uintptr = 1 // SIG_IGN
	lastSignal         = 64
)

// deaf is set before the first start and never again.
var deaf bool

// Deafen gives up all of this process's signal handlers, Go's own among them,
// for good. Every signal does what it does by default, which is nothing for the
// first process of a pid namespace; a pipe that nobody reads is an error of the
// write alone. Nobody can crash or delay the process with a signal then, its
// own faults end it without a word, and a goroutine that never calls anything
// is not interrupted.
//
// It is for a process that starts hostile programs of its own user and does
// little else. Call it before the first start: programs start with fewer calls
// then, since no handler of Go must be kept from running in the child. Nothing
// stays ignored either, as nohup would have it for all that is started.
func Deafen() {
	for sig := unix.Signal(1); sig <= lastSignal; sig++ {
		dispose(sig, byDefault)
	}
	dispose(unix.SIGPIPE, notAtAll)
	deaf = true
}

// dispose fails only for the signals that nobody can handle.
//
//go:nosplit
//go:norace
//go:nocheckptr
func dispose(sig unix.Signal, what uintptr) {
	act := sigaction{handler: what}
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, unsafe.Sizeof(act.mask), 0, 0) //nolint:gosec // what the call takes
}
