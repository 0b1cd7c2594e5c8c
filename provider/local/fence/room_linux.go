package fence

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/initproc"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/linux/netns"
)

// room is a thread in namespaces of its own, with what every sandbox has and
// nothing that is one sandbox's own. It is furnished once, and thrown away with
// the thread.
type room struct {
	// work is what to do in it; the argument says why there is no room. Closed
	// without, the thread ends.
	work chan func(err error)
}

// take returns a room: one that was begun before, or a new one.
func (b *Builder) take() room {
	select {
	case r := <-b.rooms:
		return r
	default:
		return b.begin()
	}
}

// Stock begins the room of the next sandbox, unless one was begun: most of what
// makes a sandbox is the same for all, and can be done before anybody waits.
func (b *Builder) Stock() {
	if len(b.rooms) > 0 {
		return
	}
	r := b.begin()
	select {
	case b.rooms <- r:
	default:
		close(r.work)
	}
}

// begin starts the thread of a room.
func (b *Builder) begin() room {
	r := room{work: make(chan func(error), 1)}
	go r.open(b)
	return r
}

func (r room) open(b *Builder) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The first thread of a process cannot end before the process: what it
		// entered would never be left again. Another one does it meanwhile.
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.open(b)
		}()
		<-done
		runtime.UnlockOSThread()
		return
	}
	err := b.enter()
	if f, ok := <-r.work; ok {
		f(err)
	}
	// Still locked, the thread ends with us.
}

// namespaces are those of a room; the first process makes the rest.
const namespaces = unix.CLONE_FS | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// enter makes the calling thread's surroundings a room.
func (b *Builder) enter() error {
	flags := namespaces
	if b.plan.Network {
		flags |= unix.CLONE_NEWNET
	}
	if err := unix.Unshare(flags); err != nil {
		return &initproc.Error{Step: "unshare", Errno: errnoOf(err)}
	}
	if err := unix.Sethostname([]byte(b.plan.Host)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if b.plan.Network {
		if err := netns.Loopback(); err != nil {
			return err
		}
	}
	if !b.rooted {
		if err := b.plan.Root.build(); err != nil {
			return err
		}
	}
	return mount.Terminals("/dev/pts")
}
