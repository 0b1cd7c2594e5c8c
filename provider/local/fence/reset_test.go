//go:build linux

package fence_test

import (
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/provider/local/fence"
)

// TestReset closes a socket with unread packets: the packets that were sent before are
// received, and then the end.
func TestReset(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fds[1]) }()
	for i, text := range []string{"unread", "sent"} {
		if err := fence.Send(fds[1-i], []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Close(fds[0]); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, fence.MaxPacket)
	if got, _, err := fence.Receive(fds[1], buf); err != nil || string(got) != "sent" {
		t.Errorf("received %q, %v", got, err)
	}
	if _, _, err := fence.Receive(fds[1], buf); !errors.Is(err, io.EOF) {
		t.Errorf("after the packet: %v", err)
	}
}
