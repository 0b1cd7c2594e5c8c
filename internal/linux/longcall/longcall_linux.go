// Package longcall makes system calls that are known to wait.
//
// Go lets a thread keep its processor for a while when it makes a call, in the hope
// that the call is short, and has a watchman look each 20 µs whether it was. Of a
// process that does next to nothing but wait, that is most of what it costs. A call
// that is made here gives the processor up at once.
//
// The package must not be used for calls that may return at once: those are dearer
// here.
//
// Minimum kernel: that of the call that is made.
package longcall

import (
	"syscall"
	_ "unsafe" // for linkname
)

// Call makes a system call. Pointers among the arguments are kept as those of
// syscall.Syscall are.
//
//go:uintptrescapes
//go:nosplit
func Call(number, a1, a2, a3, a4 uintptr) (r uintptr, errno syscall.Errno) {
	Enter()
	r, _, errno = syscall.RawSyscall6(number, a1, a2, a3, a4, 0, 0)
	Leave()
	return r, errno
}

// Other sandboxes depend on these names, too, and Go keeps them for that.

// Enter gives the processor up. The function that calls it must not return, grow its
// stack or allocate before it calls [Leave].
//
//go:linkname Enter runtime.entersyscallblock
func Enter()

// Leave waits for a processor.
//
//go:linkname Leave runtime.exitsyscall
func Leave()
