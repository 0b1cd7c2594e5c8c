package fence

import (
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/initproc"
	"github.com/cove-sandbox/cove/internal/linux/netns"
)

// network is a network namespace with a loopback that is awake, and nothing else.
type network struct {
	fd  int
	err error
}

// order returns where a network will come from. Making one takes the kernel as
// long as all else that a sandbox needs, so it is made beside the rest, or was
// begun before.
func (b *Builder) order() <-chan network {
	select {
	case begun := <-b.networks:
		return begun
	default:
		return b.begin()
	}
}

func (b *Builder) begin() <-chan network {
	ready := make(chan network, 1)
	go func() { ready <- b.newNetwork() }()
	return ready
}

// Stock begins to make the network of the next sandbox, unless one was begun.
func (b *Builder) Stock() {
	if !b.plan.Network || len(b.networks) > 0 {
		return
	}
	begun := b.begin()
	select {
	case b.networks <- begun:
	default:
		waste(begun)
	}
}

// newNetwork makes a network on a thread of its own and brings it back as a
// descriptor.
func (b *Builder) newNetwork() (n network) {
	n.fd = -1
	n.err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return &initproc.Error{Step: "unshare the network", Errno: errnoOf(err)}
		}
		if err := netns.Loopback(); err != nil {
			return err
		}
		fd, err := unix.Openat(b.proc, "thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &initproc.Error{Step: "open the network", Errno: errnoOf(err)}
		}
		n.fd = fd
		return nil
	})
	return n
}

// enter puts the calling thread into a network that was ordered.
func enter(ordered <-chan network) error {
	n := <-ordered
	if n.err != nil {
		return n.err
	}
	defer func() { _ = unix.Close(n.fd) }()
	if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
		return &initproc.Error{Step: "enter the network", Errno: errnoOf(err)}
	}
	return nil
}

// waste lets go of a network that was ordered and is not needed.
func waste(ordered <-chan network) {
	if n := <-ordered; n.err == nil {
		_ = unix.Close(n.fd)
	}
}
