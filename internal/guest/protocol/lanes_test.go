//go:build linux

package protocol_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// TestTooManyStreams is about a link that has no room for one more: the message is
// not sent, nothing of it is left, and the link goes on.
func TestTooManyStreams(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()
	stream := func() *protocol.Stream {
		fd, err := unix.FcntlInt(uintptr(pair[0]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return protocol.NewStream(fd, protocol.Duplex)
	}
	l := protocol.NewHostFramed(wire{})
	defer func() { _ = l.Close() }()
	const room = 4096 / 2
	for n := range room - 1 {
		if err := l.Send(&protocol.Message{Kind: protocol.KindDial, ID: uint64(n), Streams: []*protocol.Stream{stream()}}); err != nil {
			t.Fatal(n, err)
		}
	}
	before := descriptors(t)
	if err := l.Send(&protocol.Message{Kind: protocol.KindDial, Streams: []*protocol.Stream{stream(), stream()}}); !errors.Is(err, protocol.ErrNoRoom) {
		t.Errorf("two where there is room for one give %v", err)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors became %d", before, after)
	}
	if err := l.Send(&protocol.Message{Kind: protocol.KindPing}); err != nil {
		t.Error(err)
	}
	if err := l.Send(&protocol.Message{Kind: protocol.KindDial, Streams: []*protocol.Stream{stream()}}); err != nil {
		t.Errorf("one gives %v", err)
	}
}

// TestNoDescriptorLeft is about a host that has no descriptor for a stream: it turns
// the stream away, and keeps the link.
func TestNoDescriptorLeft(t *testing.T) {
	accepted := []byte{1, 0, 6, byte(protocol.KindAccepted), 0, 1, 1, 3, 2}
	reply := []byte{1, 0, 6, byte(protocol.KindReply), 0, 2, 1, 3, 4}
	plain := []byte{1, 0, 4, byte(protocol.KindReply), 0, 3, 0}
	l := protocol.NewHostFramed(wire{bytes.NewReader(slices.Concat(accepted, reply, plain))})
	defer func() { _ = l.Close() }()
	more := scarcely(t)
	first, err := l.Receive()
	second, err2 := l.Receive()
	more()
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if r, err := protocol.DecodeReply(first.Body); first.ID != 2 || len(first.Streams) > 0 || r.Reason != protocol.ReasonBusy || err != nil {
		t.Errorf("the reply is %+v, %v", first, err)
	}
	if second.ID != 3 {
		t.Errorf("then comes %+v", second)
	}
}

// TestNoDescriptorLeftForOne is the same where descriptors are passed.
func TestNoDescriptorLeftForOne(t *testing.T) {
	pair := links(t)["descriptors"]
	host, agent := pair[0], pair[1]
	send := func(m *protocol.Message) {
		if err := agent.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	send(&protocol.Message{Kind: protocol.KindReply, ID: 2, Body: protocol.Reply{}.Encode(), Streams: []*protocol.Stream{protocol.NewStream(fd, protocol.Readable)}})
	send(&protocol.Message{Kind: protocol.KindReply, ID: 3, Body: protocol.Reply{}.Encode()})
	more := scarcely(t)
	large := host.Send(&protocol.Message{Kind: protocol.KindStart, ID: 1, Body: make([]byte, 1<<20)})
	first, err := host.Receive()
	more()
	if !errors.Is(large, protocol.ErrNoRoom) {
		t.Errorf("a large message gives %v", large)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r, err := protocol.DecodeReply(first.Body); first.ID != 2 || len(first.Streams) > 0 || r.Reason != protocol.ReasonBusy || err != nil {
		t.Errorf("the reply is %+v, %v", first, err)
	}
	if second, err := host.Receive(); err != nil || second.ID != 3 {
		t.Errorf("then comes %+v, %v", second, err)
	}
}

// scarcely leaves no descriptor to this process, until what it returns is called.
func scarcely(t *testing.T) func() {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	next, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(next)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next), Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}
}
