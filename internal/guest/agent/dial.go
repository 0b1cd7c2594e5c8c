//go:build linux

package agent

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// dialPatience is how long a connection to ourselves may take, in milliseconds.
const dialPatience = 10_000

// maxDials bounds the connections of a host that share its link with all else.
const maxDials = 512

// dial connects to a port of the sandbox's own loopback, and attaches the
// connection to the reply.
func (s *server) dial(m *protocol.Message, f protocol.File) {
	shared := s.link.Relayed()
	if shared && s.in.Add(1) > maxDials {
		s.in.Add(-1)
		s.reply(m.ID, protocol.Reply{Reason: protocol.ReasonBusy})
		return
	}
	port := int(f.Port)
	fd, err := connect(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if errors.Is(err, unix.ECONNREFUSED) {
		if six, err6 := connect(unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}); err6 == nil {
			fd, err = six, nil
		}
	}
	if err != nil {
		if shared {
			s.in.Add(-1)
		}
		s.reply(m.ID, failure(err))
		return
	}
	st := protocol.NewStream(fd, protocol.Duplex)
	if shared {
		st.After(func() { s.in.Add(-1) })
	}
	s.reply(m.ID, protocol.Reply{}, st)
}

func connect(family int, to unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Connect(fd, to)
	if errors.Is(err, unix.EINPROGRESS) {
		err = connected(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// connected waits for a connection to be made.
func connected(fd int) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, dialPatience) //nolint:gosec // a descriptor
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n == 0 {
			return unix.ETIMEDOUT
		}
		errno, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil || errno == 0 {
			return err
		}
		return unix.Errno(errno)
	}
}
