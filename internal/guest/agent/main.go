//go:build linux

package agent

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
)

// Name is what argv[0] of an agent is, by which an executable that is more
// than the agent knows what it was started for.
const Name = "cove-agent"

// DefaultFD is where an agent finds its link unless it is told otherwise.
const DefaultFD = 3

// Env returns the environment that an agent is started with. Two processors are
// enough for it: Go would get ready for all that the host has, which takes a
// megabyte for sixty of them, and look for control groups first. Programs get
// nothing of it.
func Env() []string { return []string{"GOMAXPROCS=2"} }

// Main serves the host on the other end of fd and returns the exit code of the
// process. A socket that keeps packets apart passes descriptors; anything else
// is a stream of bytes and gets frames.
//
// With an argument the process is something else, see [Listen], [Door], [Mount] and
// [Stdio], or it watches what the kernel keeps for programs besides.
//
// Whatever bounds the sandbox holds already: the agent was born in it.
func Main(fd uintptr) int {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case protocol.ListenWord:
			return Listen()
		case protocol.DoorWord:
			return Door()
		case protocol.MountWord:
			return Mount(os.Args[2:])
		case Stdio:
			return stdio(os.Args[2:])
		}
	}
	forkexec.Deafen()
	// Programs share the agent's session, and must not find the terminal of
	// whoever started it. It fails only where there is a session of its own.
	_, _ = unix.Setsid()
	kind, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TYPE)
	var link protocol.Link
	if err == nil && kind == unix.SOCK_SEQPACKET {
		link, err = protocol.NewAgentDescriptors(int(fd))
		if err != nil {
			return 1
		}
	} else {
		unix.CloseOnExec(int(fd))
		_ = unix.SetNonblock(int(fd), true)
		link = protocol.NewAgentFramed(os.NewFile(fd, "link"))
	}
	return serve(link, len(os.Args) > 1 && os.Args[1] == protocol.WatchWord)
}

// serve answers the host over a link until it is over.
func serve(link protocol.Link, watch bool) int {
	hide()
	s, err := newServer(link)
	if err != nil {
		return 1
	}
	if watch {
		s.watchKernel()
	}
	s.serve()
	return 0
}

// hide closes this process to programs. They have the agent's user, and could
// look into it otherwise.
func hide() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// Args returns the arguments of an agent that finds its link; watch has it end the
// sandbox when its programs have the kernel keep too much.
func Args(watch bool) []string {
	if watch {
		return []string{Name, protocol.WatchWord}
	}
	return []string{Name}
}
