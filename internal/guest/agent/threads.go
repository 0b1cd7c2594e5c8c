//go:build linux

package agent

import (
	"runtime"
	"sync"
)

// spareThreads are more than an agent needs at once.
const spareThreads = 16

// makeThreads makes threads that stay. A sandbox may bound the processes of programs
// and of the agent together: when programs have used up all, the agent must not
// need another thread, without which Go ends.
func makeThreads() {
	var all, made sync.WaitGroup
	made.Add(spareThreads)
	for range spareThreads {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			made.Wait() // each has one of its own until then
		})
	}
	all.Wait()
}
