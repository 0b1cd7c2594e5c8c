package fence

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/initproc"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/linux/netns"
)

// Room is a thread in namespaces of its own, with what every sandbox has and
// nothing that is one sandbox's own. It is furnished once, and thrown away with
// the thread.
type Room struct {
	// work is what to do in it; the argument says why there is no room. Closed,
	// the thread ends.
	work chan func(err error)

	built bool  // its root was ordered before there was a plan
	err   error // why there is none; of its own thread
}

// Begin starts the thread of a room, before there is a plan for it. Host and
// network are those that the plan will have, and proc is a descriptor of /proc, or
// AT_FDCWD; [Builder.Use] takes the room.
func Begin(host string, network bool, proc int) *Room {
	r := &Room{work: make(chan func(error), 3)} // the root, what goes into it, and the order
	go r.open(host, network, proc)
	return r
}

// Build has the room get the root that draw returns, before there is a plan. The
// plan must have the same one; its stage does not matter any more.
func (r *Room) Build(draw func() Root) {
	r.built = true
	r.work <- func(err error) {
		if err == nil {
			root := draw()
			err = root.buildCovered()
		}
		if err == nil {
			err = mount.Terminals("/dev/pts")
		}
		r.err = err
	}
}

// Leave lets the thread end, and what is in the room with it unless somebody else
// is there. It is called once.
func (r *Room) Leave() { close(r.work) }

// take returns a room: one that was begun before, or a new one.
func (b *Builder) take() *Room {
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
	if len(b.rooms) == 0 {
		b.keep(b.begin())
	}
}

// Use takes a room that was begun before the builder was there.
func (b *Builder) Use(r *Room) {
	if !r.built {
		r = b.settleIn(r)
	}
	b.keep(r)
}

func (b *Builder) keep(r *Room) {
	select {
	case b.rooms <- r:
	default:
		close(r.work)
	}
}

func (b *Builder) begin() *Room { return b.settleIn(Begin(b.plan.Host, b.plan.Network, b.proc)) }

// settleIn has the room get its root.
func (b *Builder) settleIn(r *Room) *Room {
	r.work <- func(err error) {
		covers := b.covers
		if err == nil && !b.rooted {
			if err = b.plan.Root.build(); err == nil && b.plan.Cover {
				covers, err = b.plan.Root.covers(b.proc)
			}
		}
		if err == nil {
			err = covers.cover(b.proc)
		}
		if err == nil {
			err = mount.Terminals("/dev/pts")
		}
		r.err = err
	}
	return r
}

func (r *Room) open(host string, network bool, proc int) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The first thread of a process cannot end before the process: what it
		// entered would never be left again. Another one does it meanwhile.
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.open(host, network, proc)
		}()
		<-done
		runtime.UnlockOSThread()
		return
	}
	err := enter(host, network, proc)
	for f := range r.work {
		f(err)
	}
	// Still locked, the thread ends with us.
}

// namespaces are those of a room; the first process makes the rest.
const namespaces = unix.CLONE_FS | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// enter makes the calling thread's surroundings those of a room.
func enter(host string, network bool, proc int) error {
	flags := namespaces
	if network {
		flags |= unix.CLONE_NEWNET
	}
	if err := unix.Unshare(flags); err != nil {
		return &initproc.Error{Step: "unshare", Errno: errnoOf(err)}
	}
	if err := unix.Sethostname([]byte(host)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if !network {
		return nil
	}
	if err := netns.Narrow(proc); err != nil {
		return err
	}
	return netns.Loopback()
}
