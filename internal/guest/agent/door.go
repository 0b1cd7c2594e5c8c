//go:build linux

package agent

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// taken is what an agent tells a door whose streams it has.
const taken = '+'

// knock is the pause before a door looks for its agent again.
const knock = 2 * time.Millisecond

// Door hands its standard input and output to the agent that listens in the same
// sandbox, and returns the exit code of the process when the agent has no more use
// for them. It touches no byte that goes through. Who starts it is the host: it
// must be root, which needs no privileges for it, or the parent of both where nobody is.
func Door() int {
	parent := 0
	if len(os.Args) > 2 && os.Args[2] == protocol.BesideWord {
		parent = os.Getppid()
	}
	fd, err := findAgent(parent)
	if err != nil {
		return complain("no agent listens in this sandbox: " + err.Error())
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendmsg(fd, []byte{taken}, unix.UnixRights(int(os.Stdin.Fd()), int(os.Stdout.Fd())), nil, unix.MSG_NOSIGNAL); err != nil {
		return complain("the agent takes no streams: " + err.Error())
	}
	// They are the agent's now: that it closes them must be their end.
	_, _ = os.Stdin.Close(), os.Stdout.Close()
	return await(fd)
}

// await returns when the agent has closed the door, which it opened if it said so.
func await(fd int) int {
	code := 1
	var b [1]byte
	for {
		n, err := unix.Read(fd, b[:])
		switch {
		case n > 0:
			code = 0
		case errors.Is(err, unix.EINTR):
		case code != 0:
			return complain("the agent refused the door; it must be opened by root, or by who started the agent")
		default:
			return code
		}
	}
}

// findAgent connects to the agent. It may have been started just now, and then has
// a moment to begin.
func findAgent(parent int) (int, error) {
	late := time.Now().Add(doorPatience)
	for {
		fd, at, err := socketAt(parent)
		if err != nil {
			return -1, err
		}
		if err = errors.Join(unix.SetNonblock(fd, false), unix.Connect(fd, at)); err == nil {
			return fd, nil
		}
		_ = unix.Close(fd)
		if !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.EINTR) || time.Now().After(late) {
			return -1, err
		}
		pause := time.NewTimer(knock)
		<-pause.C
	}
}
