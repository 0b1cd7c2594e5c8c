// Package flock locks open files and directories between processes. The kernel
// gives a lock back when the file is closed, and so when the process ends, however
// it ends. It does not wait, and it knows no names: who has a lock and how long to
// try is for its callers.
package flock

import (
	"errors"
	"os"
	"syscall"
)

// Kind says who else may have a lock at the same time.
type Kind int

// The kinds.
const (
	Shared    Kind = syscall.LOCK_SH // others that share it
	Exclusive Kind = syscall.LOCK_EX // nobody
)

// Try locks a file, and reports whether it could; false without an error says that
// another has it.
func Try(f *os.File, kind Kind) (ok bool, err error) {
	conn, err := f.SyscallConn() // and not Fd, which would have reads of it block a thread
	if err != nil {
		return false, err
	}
	var locked error
	if err := conn.Control(func(fd uintptr) {
		for {
			locked = syscall.Flock(int(fd), int(kind)|syscall.LOCK_NB)
			if !errors.Is(locked, syscall.EINTR) {
				return
			}
		}
	}); err != nil {
		return false, err
	}
	if errors.Is(locked, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return locked == nil, locked
}
