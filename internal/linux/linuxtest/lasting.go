//go:build linux

package linuxtest

import (
	"runtime"
	"sync"
)

// Lasting runs f on a thread that lives as long as the process. A child that asked to
// be killed with its parent is killed with the very thread that made it, and Go ends
// threads: each on which a goroutine ended that had it to itself.
func Lasting(f func()) {
	startLasting()
	done := make(chan struct{})
	errands <- func() {
		defer close(done)
		f()
	}
	<-done
}

var errands = make(chan func())

var startLasting = sync.OnceFunc(func() { go doErrands() })

// doErrands never ends.
func doErrands() {
	runtime.LockOSThread()
	for f := range errands {
		f()
	}
}
