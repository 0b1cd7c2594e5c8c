//go:build linux

package agent

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
)

// Listen is an agent that waits for its hosts, which come through doors, and
// returns the exit code of the process. It outlives them, until one says that it
// is over. It must not be root: what tells a door from a program is that a program
// cannot be. Where nobody is root, as in a sandbox within another, it is that a program
// has another parent: such an agent is safe from its programs as far as they let it be.
func Listen() int {
	offer := newSacrifice()
	hide()
	user, parent := 0, 0
	switch {
	case len(os.Args) <= 2 || os.Args[2] == protocol.FilterWord:
	case os.Args[2] == protocol.BesideWord:
		parent = os.Getppid()
	default:
		var err error // before signals mean nothing: threads are told by one
		if user, err = apart(os.Args[2]); err != nil {
			return complain("the agent cannot stand apart from programs: " + err.Error())
		}
	}
	forkexec.Deafen()
	_, _ = unix.Setsid() // as in Main
	if os.Getuid() == 0 {
		return complain("an agent that listens cannot be root; start it as another user")
	}
	makeThreads()
	if len(os.Args) > 2 && os.Args[2] == protocol.FilterWord {
		if err := filter(); err != nil {
			return complain("the agent cannot filter system calls: " + err.Error())
		}
	}
	d, err := openDoors(parent)
	if err != nil {
		return complain("the agent cannot listen: " + err.Error())
	}
	s, err := newServer(d)
	if err != nil {
		return complain("the agent cannot begin: " + err.Error())
	}
	if len(os.Args) > 2 && os.Args[2] == protocol.FilterWord {
		s.watchKernel()
	}
	s.offer, s.user = offer, user
	go d.attend()
	s.serve()
	return 0
}

// complain says what is wrong to who started us.
func complain(what string) int {
	_, _ = os.Stderr.WriteString("cove-agent: " + what + "\n")
	return 1
}

// socketAt makes a socket for the address of agents, or of the one that has this
// parent. It must not block.
func socketAt(parent int) (int, *unix.SockaddrUnix, error) {
	name := protocol.Address
	if parent != 0 {
		name += "-" + strconv.Itoa(parent)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	return fd, &unix.SockaddrUnix{Name: name}, os.NewSyscallError("socket", err)
}

// openDoors begins to listen.
func openDoors(parent int) (*doors, error) {
	fd, at, err := socketAt(parent)
	if err != nil {
		return nil, err
	}
	const waiting = 64
	if err := unix.Bind(fd, at); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	if err := unix.Listen(fd, waiting); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("listen", err)
	}
	return newDoors(os.NewFile(uintptr(fd), "doors"), parent), nil
}
