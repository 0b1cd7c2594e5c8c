//go:build linux

package guest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

// liar is an agent that answers as a test wants.
type liar struct {
	link protocol.Link
	fd   int
}

// lying connects a host to a liar, who handles all that comes after hello.
func lying(t *testing.T, framed bool, handle func(l liar, m *protocol.Message)) *guest.Conn {
	t.Helper()
	return lyingAs(t, protocol.Version, framed, handle)
}

// lyingAs is lying with the version that the liar says.
func lyingAs(t *testing.T, version uint64, framed bool, handle func(l liar, m *protocol.Message)) *guest.Conn {
	t.Helper()
	kind := unix.SOCK_SEQPACKET
	if framed {
		kind = unix.SOCK_STREAM
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var tr guest.Transport
	var link protocol.Link
	if framed {
		_, _ = unix.SetNonblock(fds[0], true), unix.SetNonblock(fds[1], true)
		tr, link = guest.Framed(os.NewFile(uintptr(fds[0]), "host")), protocol.NewAgentFramed(os.NewFile(uintptr(fds[1]), "agent"))
	} else {
		if tr, err = guest.Descriptors(fds[0]); err != nil {
			t.Fatal(err)
		}
		if link, err = protocol.NewAgentDescriptors(fds[1]); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = link.Close() }()
		for {
			m, err := link.Receive()
			if err != nil {
				return
			}
			if m.Kind == protocol.KindHello {
				_ = link.Send(&protocol.Message{Kind: protocol.KindReply, ID: m.ID, Body: protocol.Reply{Body: protocol.Greeting{Version: version}.Encode()}.Encode()})
			} else {
				handle(liar{link, fds[1]}, m)
			}
			for _, s := range m.Streams {
				s.Close()
			}
		}
	}()
	c, err := guest.Connect(t.Context(), tr, guest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	return c
}

func null(t *testing.T) *protocol.Stream {
	t.Helper()
	fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
	}
	return protocol.NewStream(fd, protocol.Duplex)
}

// TestLies tries what an agent in the hands of an attacker could answer. The
// host must end the connection, hold nothing, and not hang.
func TestLies(t *testing.T) {
	reply := func(m *protocol.Message, body []byte, streams ...*protocol.Stream) *protocol.Message {
		return &protocol.Message{Kind: protocol.KindReply, ID: m.ID, Body: body, Streams: streams}
	}
	fine := protocol.Reply{}.Encode()
	for name, lie := range map[string]func(l liar, m *protocol.Message){
		"garbage": func(l liar, m *protocol.Message) { _ = l.link.Send(reply(m, []byte{0xff, 0xff, 0xff})) },
		"a request": func(l liar, m *protocol.Message) {
			_ = l.link.Send(&protocol.Message{Kind: protocol.KindStart, ID: m.ID})
		},
		"an end with streams": func(l liar, m *protocol.Message) {
			_ = l.link.Send(&protocol.Message{Kind: protocol.KindExited, ID: m.ID, Body: protocol.Exited{}.Encode(), Streams: []*protocol.Stream{null(t)}})
		},
		"an end of nonsense": func(l liar, m *protocol.Message) {
			_ = l.link.Send(&protocol.Message{Kind: protocol.KindExited, ID: m.ID, Body: []byte{1}})
		},
		"streams nobody wants": func(l liar, m *protocol.Message) { _ = l.link.Send(reply(m, fine, null(t), null(t))) },
		"no terminal":          func(l liar, m *protocol.Message) { _ = l.link.Send(reply(m, fine)) },
		"it hangs up":          func(l liar, _ *protocol.Message) { _ = l.link.Close() },
		"raw bytes":            func(l liar, _ *protocol.Message) { _, _ = unix.Write(l.fd, []byte{9, 0, 0}) },
	} {
		for _, framed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				linuxtest.NoLeaks(t, "")
				ignore := goleak.IgnoreCurrent()
				t.Run("told", func(t *testing.T) {
					c := lying(t, framed, lie)
					_, err := c.Start(t.Context(), cove.Command{Argv: []string{"x"}, TTY: &cove.WindowSize{Cols: 1, Rows: 1}})
					if framed && name == "streams nobody wants" || name == "raw bytes" && err == nil {
						err = cove.Errorf(cove.Unavailable, "as it may be")
					}
					wants(t, cove.Unavailable, err, "Start")
				})
				goleak.VerifyNone(t, ignore)
			})
		}
	}
}

// TestLiesAboutFiles tries answers and streams that are not what was asked for.
func TestLiesAboutFiles(t *testing.T) {
	for name, lie := range map[string]struct {
		body    []byte
		records []byte
	}{
		"nothing":          {},
		"cut":              {records: []byte{1, 5, 'x'}},
		"unknown record":   {records: []byte{77, 0}},
		"huge record":      {records: []byte{1, 0xff, 0xff, 0xff, 0xff, 0x7f}},
		"wrong record":     {records: []byte{byte(protocol.RecordChange), 2, 1, 0}},
		"bad file":         {records: []byte{byte(protocol.RecordFile), 1, 0xff}},
		"data and no file": {records: []byte{byte(protocol.RecordData), 1, 'x', byte(protocol.RecordChange), 2, 9, 9}},
		"nothing at all":   {records: []byte{byte(protocol.RecordData), 0, byte(protocol.RecordChange), 2, 9, 9}},
		"failed well":      {records: []byte{byte(protocol.RecordFailed), 3, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			c := lying(t, false, func(l liar, m *protocol.Message) {
				for _, s := range m.Streams {
					if s.Flow == protocol.Writable {
						_, _ = unix.Write(s.FD(), lie.records)
					}
				}
				_ = l.link.Send(&protocol.Message{Kind: protocol.KindReply, ID: m.ID, Body: protocol.Reply{Body: lie.body}.Encode()})
			})
			ctx, f := t.Context(), c.Files()
			bad := func(what string, err error) {
				t.Helper()
				if err == nil || errors.Is(err, io.EOF) {
					t.Errorf("%s believes it", what)
				}
			}
			if name != "data and no file" && name != "nothing at all" {
				r, err := f.Read(ctx, "x", 0, 0)
				if err == nil {
					_, err = io.Copy(io.Discard, r)
					_ = r.Close()
				}
				bad("Read", err)
			}
			a, err := f.Archive(ctx, "x")
			if err == nil {
				_, err = io.Copy(io.Discard, a)
				_ = a.Close()
			}
			bad("Archive", err)
			for _, err := range f.List(ctx, "x", 1) {
				bad("List", err)
			}
			if name != "wrong record" {
				for change, err := range f.Watch(ctx, "x") {
					if change.Kind != cove.Watching {
						bad("Watch", err)
					}
				}
			}
			_, err = f.Stat(ctx, "x")
			wants(t, cove.Unavailable, err, "Stat")
			<-c.Done()
		})
	}
}

func TestLiesAboutConnections(t *testing.T) {
	for _, framed := range []bool{false, true} {
		c := lying(t, framed, func(l liar, m *protocol.Message) {
			_ = l.link.Send(&protocol.Message{Kind: protocol.KindReply, ID: m.ID, Body: protocol.Reply{}.Encode(), Streams: []*protocol.Stream{null(t), null(t)}})
		})
		_, err := c.Dial(t.Context(), 1)
		wants(t, cove.Unavailable, err, "Dial")
		_, err = c.Usage(t.Context())
		wants(t, cove.Unavailable, err, "Usage")
	}
	c := lying(t, false, func(l liar, m *protocol.Message) {
		_ = l.link.Send(&protocol.Message{Kind: protocol.KindReply, ID: m.ID, Body: protocol.Reply{}.Encode()})
	})
	_, err := c.Usage(t.Context())
	wants(t, cove.Unavailable, err, "Usage")
}

func TestOtherVersions(t *testing.T) {
	for _, body := range [][]byte{protocol.Reply{Body: protocol.Greeting{Version: 99}.Encode()}.Encode(), protocol.Reply{Body: protocol.Greeting{Version: protocol.Oldest - 1}.Encode()}.Encode(), protocol.Reply{}.Encode()} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := guest.Descriptors(fds[0])
		if err != nil {
			t.Fatal(err)
		}
		link, err := protocol.NewAgentDescriptors(fds[1])
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			m, err := link.Receive()
			if err == nil {
				_ = link.Send(&protocol.Message{Kind: protocol.KindReply, ID: m.ID, Body: body})
			}
		}()
		if _, err := guest.Connect(t.Context(), tr, guest.Options{}); err == nil {
			t.Error("another version was accepted")
		}
		_ = link.Close()
	}
	if _, err := guest.Descriptors(0); err == nil {
		t.Error("a descriptor that is no socket was accepted")
	}
}

// TestLateAnswers wants calls to end with their context though the agent says
// nothing, and what comes later to be dropped.
func TestLateAnswers(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	t.Run("silence", func(t *testing.T) {
		asked := make(chan *protocol.Message, 8)
		c := lying(t, false, func(_ liar, m *protocol.Message) {
			m.Body = slices.Clone(m.Body)
			asked <- m
		})
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 2)
		go func() {
			_, err := c.Start(ctx, cove.Command{Argv: []string{"x"}, Stdin: strings.NewReader("x"), Stdout: io.Discard})
			failed <- err
		}()
		<-asked
		cancel()
		wants(t, cove.Canceled, <-failed, "Start")
		if m := <-asked; m.Kind != protocol.KindKill {
			t.Errorf("a start that was given up is followed by %d, not by a kill", m.Kind)
		}
		ctx, cancel = context.WithCancel(t.Context())
		go func() { failed <- c.Files().Write(ctx, "x", strings.NewReader("x"), 0) }()
		<-asked
		cancel()
		wants(t, cove.Canceled, <-failed, "Write")
	})
}
