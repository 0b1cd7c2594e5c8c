// Package vfork makes children that share their maker's memory until they
// execute something: the cheapest way to start a program, and one that Go keeps
// to itself.
//
// The maker's thread sleeps meanwhile, on the same stack. So the child must
// never return from the function that made it, and neither may grow the stack,
// allocate, or be watched by the race detector: that function is noinline and
// norace, what it calls in the child is nosplit. The package only makes the
// call; it must not be used from anywhere but packages that start programs.
//
// Minimum kernel: that of the call that is made.
package vfork

import (
	"syscall"
	_ "unsafe" // for linkname
)

// Call makes a system call that is clone or clone3, with CLONE_VM and
// CLONE_VFORK, and returns twice: 0 in the child. Calls are between [Before] and
// [After], with syscall.ForkLock held.
func Call(number, a1, a2, a3 uintptr) (pid uintptr, errno syscall.Errno)

// The runtime blocks signals around a fork and gives the child its defaults
// back. Other sandboxes depend on these names, too, and Go keeps them for that.

// Before is called before the call, in the function that makes it.
//
//go:linkname Before syscall.runtime_BeforeFork
func Before()

// After is called by the parent, in the same function or as soon as that has returned.
//
//go:linkname After syscall.runtime_AfterFork
func After()

// InChild is called by the child first.
//
//go:linkname InChild syscall.runtime_AfterForkInChild
func InChild()
