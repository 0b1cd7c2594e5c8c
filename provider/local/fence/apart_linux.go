package fence

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errand is work for a thread that may go into other directories and namespaces.
type errand struct {
	do   func() error
	done chan error
}

// errands reach a thread that waits for one.
var errands = make(chan errand)

// lingering is how long a thread waits for more to do: steps follow each other
// closely, and to make a thread takes as long as some of them.
const lingering = 50 * time.Millisecond

// apart runs f on a thread of its own, which may go into other directories and
// into another namespace of mounts.
func apart(f func() error) error {
	e := errand{do: f, done: make(chan error, 1)}
	select {
	case errands <- e:
	default:
		go onThread(func() { run(e) })
	}
	return <-e.done
}

// run does an errand, and those that follow it soon. One who cannot come home
// does no more.
func run(e errand) {
	home, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer func() { _ = unix.Close(home) }()
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		e.done <- os.NewSyscallError("unshare", err)
		return
	}
	idle := time.NewTimer(lingering)
	defer idle.Stop()
	for {
		e.done <- e.do()
		if err != nil || unix.Setns(home, unix.CLONE_NEWNS) != nil {
			return
		}
		idle.Reset(lingering)
		select {
		case e = <-errands:
		case <-idle.C:
			return
		}
	}
}
