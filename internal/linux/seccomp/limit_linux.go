package seccomp

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// The kernel bounds the filters over one thread together: it counts the instructions
// that it makes of each, and some more for each. Its own are two for an answer and
// one for a jump, behind three that begin a filter.
const (
	allInstructions = 1 << 18 / instructionSize
	fillerCost      = 2 + 3 + 4 // beside the instructions that we write
)

// ownInstructions are those that [LimitFilters] leaves: about 600 for the filter of
// [Sandbox], the rest for filters that programs install.
const ownInstructions = 2048

// LimitFilters leaves the calling thread, or all threads of the process, and all that
// is started from there, little room for more filters. The memory that filters are
// compiled to has one bound for the whole machine (net.core.bpf_jit_limit), beyond which
// nobody makes a sandbox any more, and every thread of a sandbox could install as
// much as the kernel lets one thread have. So we use most of that up ourselves, once,
// with filters that allow everything in their first instruction: all threads share
// them, and jumps to the next instruction are compiled to nothing on amd64.
//
// As for [Install], the thread has no_new_privs, or is privileged.
func LimitFilters(allThreads bool) error {
	room, err := filterRoom()
	for n := 0; err == nil && room > ownInstructions+fillerCost+1; room -= n + fillerCost {
		n = min(room-ownInstructions-fillerCost, maxInstructions)
		err = Install(filler(n), allThreads)
	}
	return err
}

// filler is a filter of n instructions, of which one is ever carried out.
func filler(n int) Program {
	p := make(Program, n)
	for i := range p {
		p[i] = skip(0)
	}
	p[0], p[n-1] = ret(Allow), ret(Allow)
	return p
}

// filterRoom is how many instructions the calling thread has left. Whoever started us
// may have filters of their own, whose length nobody tells: then a thread that ends
// with the question tries.
func filterRoom() (int, error) {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	if err != nil {
		return 0, os.NewSyscallError("prctl", err)
	}
	if mode == unix.SECCOMP_MODE_DISABLED {
		return allInstructions, nil
	}
	type result struct {
		room int
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: with it the thread ends
		var r result
		const finest = 64
		for n := maxInstructions; n >= finest && r.err == nil; {
			switch err := Install(filler(n), false); {
			case err == nil:
				r.room += n + fillerCost
			case errors.Is(err, unix.ENOMEM):
				n /= 2
			default:
				r.err = err
			}
		}
		done <- r
	}()
	r := <-done
	return r.room, r.err
}
