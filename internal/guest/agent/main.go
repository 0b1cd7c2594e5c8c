//go:build linux

package agent

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Name is what argv[0] of an agent is, by which an executable that is more
// than the agent knows what it was started for.
const Name = "cove-agent"

// DefaultFD is where an agent finds its link unless it is told otherwise.
const DefaultFD = 3

// Setup carries out what the host asks for in a setup request, before the first
// program: mounts, limits, lockdown. It gets the body of the request and its
// descriptors, which are closed afterwards. It runs on the thread that starts
// programs; what it changes for one thread only does not hold for file
// operations, so it must change all threads or none.
type Setup func(body []byte, fds []int) error

// Main serves the host on the other end of fd and returns the exit code of the
// process. A socket that keeps packets apart passes descriptors; anything else
// is a stream of bytes and gets frames. setup may be nil: then a setup request
// is refused.
func Main(fd uintptr, setup Setup) int {
	listen()
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
	return Serve(link, setup)
}

// Serve is Main for a link that is there already.
func Serve(link protocol.Link, setup Setup) int {
	// Programs have the agent's user: without this they could look into it.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if os.Getpid() != 1 {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	s, err := newServer(link, setup)
	if err != nil {
		return 1
	}
	s.serve()
	return 0
}
