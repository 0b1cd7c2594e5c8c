package cluster

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unheard bounds how long what was sent may be without a sign that it came.
func unheard(most time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) {
			set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(most.Milliseconds()))
		})
		if err != nil {
			return err
		}
		return set
	}
}
