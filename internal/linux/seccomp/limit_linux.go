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
// no sandbox can be made any more, and every thread of a sandbox could install as
// much as the kernel lets one thread have. So we use most of that up ourselves, once,
// with filters that allow everything in their first instruction: all threads share
// them, and jumps to the next instruction are compiled to nothing on amd64.
//
// As for [Install], the thread has no_new_privs, or is privileged.
func LimitFilters(allThreads bool) error {
	room, err := filterRoom()
	for err == nil && room > ownInstructions+fillerCost+1 {
		n := min(room-ownInstructions-fillerCost, maxInstructions)
		err = Install(filler(n), allThreads)
		room -= n + fillerCost
	}
	return err
}

// Last returns a program that also refuses further filters, as a kernel does that was
// built without them: EINVAL.
func Last(p Program) Program {
	refuse := ret(Fail(unix.EINVAL))
	const argument = 16 // where the first one begins
	return append(Program{
		load(0),
		jump(unix.BPF_JEQ, unix.SYS_SECCOMP, 0, 3),
		load(argument),
		jump(unix.BPF_JEQ, unix.SECCOMP_SET_MODE_FILTER, 4, 0),
		skip(4),
		jump(unix.BPF_JEQ, unix.SYS_PRCTL, 0, 3),
		load(argument),
		jump(unix.BPF_JEQ, unix.PR_SET_SECCOMP, 0, 1),
		refuse,
	}, p...)
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

// filterRoom is how many instructions the calling thread has left. The process that started us
// may have installed filters, whose length the kernel does not tell: then a thread that ends
// with the question tries.
func filterRoom() (int, error) {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	if err != nil {
		return 0, os.NewSyscallError("prctl", err)
	}
	if mode == unix.SECCOMP_MODE_DISABLED {
		return allInstructions, nil
	}
	t := trial{done: make(chan struct{})}
	go t.run()
	<-t.done
	return t.room, errors.Join(t.err, ended(t.thread))
}

// trial is what a thread with filters of its own finds out.
type trial struct {
	thread, room int
	err          error
	done         chan struct{}
}

func (t *trial) run() {
	runtime.LockOSThread()
	if t.thread = unix.Gettid(); t.thread == unix.Getpid() {
		// The first thread lives as long as the process. Another one does it.
		go t.run()
		<-t.done
		runtime.UnlockOSThread()
		return
	}
	defer close(t.done) // still locked, the thread ends with us
	const finest = 64
	for n := maxInstructions; n >= finest && t.err == nil; {
		switch err := Install(filler(n), false); {
		case err == nil:
			t.room += n + fillerCost
		case errors.Is(err, unix.ENOMEM):
			n /= 2
		default:
			t.err = err
		}
	}
}

// ended waits for the end of a thread: while one has filters of its own, none can be
// put over all.
func ended(thread int) error {
	const attempts = 1000
	for range attempts {
		if errors.Is(unix.Tgkill(unix.Getpid(), thread, 0), unix.ESRCH) {
			return nil
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil) // however long it was
	}
	return errors.New("seccomp: a thread that tried filters does not end")
}
