//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// settle makes the process one that leaves nothing behind and depends on nothing
// around it.
func settle() error {
	// The engine looks into the home of its user, for settings and extensions.
	os.Clearenv()
	for name, value := range map[string]string{"HOME": "/nonexistent", "TZ": "UTC", "LC_ALL": "C"} {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("environment: %w", err)
		}
	}
	// An image of the memory would be written to the workspace, or with 0 be given to a
	// handler of the host. A process with a hard limit of 0 cannot set 1.
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_CORE, &l)
	if err == nil {
		l.Max = min(l.Max, 1)
		l.Cur = l.Max
		err = unix.Setrlimit(unix.RLIMIT_CORE, &l)
	}
	if err != nil {
		return fmt.Errorf("core files: %w", err)
	}
	return nil
}

// limitMemory keeps the process within so many bytes, with some room to spare: an
// allocation fails then, which the engine says in words, where otherwise the kernel
// would end the process. The engine's own limit is no such bound, since it does not
// count every text that it works on.
func limitMemory(memory int64, threads int) error {
	// What is mapped is counted, used or not: room for the stacks of threads.
	const stack = 8 << 20
	warm(threads + spareThreads)
	now, err := mappedMemory()
	if err != nil {
		return err
	}
	more := max(memory/20*17-now.resident, memory/4) + int64(threads)*stack
	if err := setLimit(unix.RLIMIT_DATA, now.data+more); err != nil {
		return err
	}
	if !holds(now.data + more) {
		// A kernel that counts no data, as gVisor's, counts addresses. More of those
		// are taken than are used.
		return setLimit(unix.RLIMIT_AS, now.size+more)
	}
	return nil
}

func setLimit(resource int, most int64) error {
	bytes := uint64(most) //nolint:gosec // It is a sum of sizes.
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: bytes, Max: bytes}); err != nil {
		return fmt.Errorf("memory limit: %w", err)
	}
	return nil
}

// holds reports whether the process cannot map this much.
func holds(most int64) bool {
	b, err := unix.Mmap(-1, 0, int(most), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return true
	}
	_ = unix.Munmap(b) // nothing is in it
	return false
}

// spareThreads is how many threads the runtime has at most beside those that run Go.
const spareThreads = 6

// warm has the runtime make its threads: later there may be no memory for one, and
// that would end the process.
func warm(threads int) {
	var all, done sync.WaitGroup
	all.Add(threads)
	for range threads {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		})
	}
	done.Wait()
}

// memory is what the process has, in bytes.
type memory struct{ size, resident, data int64 }

// mappedMemory returns what the process has mapped.
func mappedMemory() (memory, error) {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return memory{}, fmt.Errorf("memory in use: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	var m memory
	var shared, text, library int64
	if _, err := fmt.Fscan(f, &m.size, &m.resident, &shared, &text, &library, &m.data); err != nil {
		return memory{}, fmt.Errorf("memory in use: %w", err)
	}
	page := int64(os.Getpagesize())
	return memory{m.size * page, m.resident * page, m.data * page}, nil
}
