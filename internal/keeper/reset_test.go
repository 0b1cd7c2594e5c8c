//go:build linux

package keeper_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/keeper"
)

// TestRequestsOfTheDead is about a server that dies with unread answers: the
// keeper carries out the requests that are in its queue.
func TestRequestsOfTheDead(t *testing.T) {
	const requests = 64
	dir := t.TempDir()
	stop, _, err := keeper.Serve(dir)
	must(t, err)
	defer stop()
	conn, err := keeper.Raw(dir)
	must(t, err)
	_, err = conn.Write(keeper.Hello(keeper.Protocol))
	must(t, err)
	_, err = conn.Read(make([]byte, 1024))
	must(t, err)
	for i := range requests {
		_, err = conn.Write(keeper.Ask(keeper.KindPut, fmt.Sprint("box-", i), ""))
		must(t, err)
	}
	must(t, conn.Close())
	c, err := keeper.Connect(t.Context(), dir)
	must(t, err)
	defer func() { must(t, c.Close()) }()
	names, err := c.List(t.Context())
	if err != nil || len(names) != requests {
		t.Errorf("%d requests of %d were carried out: %v", len(names), requests, err)
	}
	for _, name := range names {
		must(t, c.Drop(t.Context(), name))
	}
}

// TestReset closes a socket with unread packets: the packets that were sent
// before are received.
func TestReset(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	for i, text := range []string{"unread", "sent"} {
		_, err = unix.Write(fds[1-i], []byte(text))
		must(t, err)
	}
	must(t, unix.Close(fds[0]))
	got, err := keeper.Receive(fds[1])
	if err != nil || string(got) != "sent" {
		t.Errorf("received %q, %v", got, err)
	}
}
