//go:build linux

package protocol_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// links returns the two ends of each kind of link.
func links(t testing.TB) map[string][2]protocol.Link {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	host, err := protocol.NewHostDescriptors(fds[0])
	if err != nil {
		t.Fatal(err)
	}
	agent, err := protocol.NewAgentDescriptors(fds[1])
	if err != nil {
		t.Fatal(err)
	}
	a, b := net.Pipe()
	all := map[string][2]protocol.Link{
		"descriptors": {host, agent},
		"framed":      {protocol.NewHostFramed(a), protocol.NewAgentFramed(b)},
	}
	t.Cleanup(func() {
		for _, l := range all {
			_, _ = l[0].Close(), l[1].Close()
		}
	})
	return all
}

// TestDrainAfterDeadline shows that what was written is delivered also by a file
// whose readers were all sent home.
func TestDrainAfterDeadline(t *testing.T) {
	mine, theirs, err := protocol.Pipe(protocol.Writable)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	defer theirs.Close()
	if _, err := unix.Write(theirs.FD(), []byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := mine.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	err = protocol.Drain(mine, func(b []byte) error {
		got = append(got, b...)
		return nil
	})
	if err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestStalled sends to somebody who takes nothing.
func TestStalled(t *testing.T) {
	protocol.HurryUp(t, 20*time.Millisecond)
	for name, l := range links(t) {
		var err error
		for i := 0; err == nil && i < 10_000; i++ {
			err = l[0].Send(&protocol.Message{Kind: protocol.KindPing, ID: 1, Body: make([]byte, 16<<10)})
		}
		if !errors.Is(err, protocol.ErrStalled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStill sends to somebody who is stopped for longer than patience, and goes on.
func TestStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		host, agent := protocol.NewHostFramed(a), protocol.NewAgentFramed(b)
		defer func() { _, _ = host.Close(), agent.Close() }()
		still := host.(interface{ Still(paused bool) }).Still
		sent := make(chan error, 1)
		send := func() { sent <- host.Send(&protocol.Message{Kind: protocol.KindPing, ID: 1}) }
		still(true)
		go send()
		<-time.After(time.Hour)
		still(false)
		<-time.After(20 * time.Second) // from now on it is waited for
		if _, err := agent.Receive(); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		go send()
		if err := <-sent; !errors.Is(err, protocol.ErrStalled) {
			t.Errorf("who runs and takes nothing gives %v", err)
		}
	})
}

func TestLinks(t *testing.T) {
	for name, l := range links(t) {
		t.Run(name, func(t *testing.T) {
			for _, body := range []string{"", "small", strings.Repeat("x", 100<<10), strings.Repeat("y", 3<<20)} {
				mine, theirs, err := protocol.Pipe(protocol.Readable)
				if err != nil {
					t.Fatal(err)
				}
				back, forth, err := protocol.Pipe(protocol.Writable)
				if err != nil {
					t.Fatal(err)
				}
				got := make(chan *protocol.Message, 1)
				go func() {
					m, err := l[1].Receive()
					if err != nil {
						t.Error(err)
					}
					got <- m
					if name == "framed" {
						_, _ = l[1].Receive() // moves the data until the end
					}
				}()
				if name == "framed" {
					go func() { _, _ = l[0].Receive() }()
				}
				if err := l[0].Send(&protocol.Message{Kind: protocol.KindStart, ID: 1 << 50, Body: []byte(body), Streams: []*protocol.Stream{theirs, forth}}); err != nil {
					t.Fatal(err)
				}
				m := <-got
				if m.Kind != protocol.KindStart || m.ID != 1<<50 || string(m.Body) != body || len(m.Streams) != 2 {
					t.Errorf("%d %d, %d bytes, %d streams", m.Kind, m.ID, len(m.Body), len(m.Streams))
				}
				in, out := m.Streams[0].File("in"), m.Streams[1].File("out")
				go func() {
					_, _ = io.WriteString(mine, "forth")
					_ = mine.Close()
				}()
				b, err := io.ReadAll(in)
				if string(b) != "forth" || err != nil {
					t.Errorf("%q, %v", b, err)
				}
				_, _ = io.WriteString(out, "back")
				_, _ = out.Close(), in.Close()
				if b, err := io.ReadAll(back); string(b) != "back" || err != nil {
					t.Errorf("%q, %v", b, err)
				}
				_ = back.Close()
				if name == "framed" {
					break // the goroutines above are at it
				}
			}
			if err := l[0].Send(&protocol.Message{Kind: protocol.KindPing, Body: make([]byte, protocol.MaxBody+1)}); !errors.Is(err, unix.EMSGSIZE) {
				t.Errorf("a body that is too large gives %v", err)
			}
			_ = l[0].Close()
			_ = l[0].Close()
			if err := l[0].Send(&protocol.Message{Kind: protocol.KindPing, Streams: []*protocol.Stream{protocol.NewStream(-1, protocol.Duplex)}}); err == nil {
				t.Error("a link that is closed sends")
			}
		})
	}
}

// TestBadPackets sends what no agent and no host would.
func TestBadPackets(t *testing.T) {
	goleak.VerifyNone(t) // those that move streams of other tests close them at their end
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	passed := unix.UnixRights(int(null.Fd()))
	for name, p := range map[string]struct{ packet, oob []byte }{
		"no kind":            {packet: []byte{0, 0, 1, 0}},
		"unknown kind":       {packet: []byte{99, 0, 1, 0}},
		"short":              {packet: []byte{1}},
		"streams missing":    {packet: []byte{1, 0, 1, 1, 3}},
		"streams not named":  {packet: []byte{1, 0, 1, 0}, oob: passed},
		"unknown flow":       {packet: []byte{1, 0, 1, 1, 0}, oob: passed},
		"too many streams":   {packet: []byte{1, 0, 1, 5, 1, 1, 1, 1, 1}},
		"memory that is not": {packet: []byte{1, 1, 1, 0}, oob: passed},
		"too long":           {packet: make([]byte, 64<<10)},
		"too many passed":    {packet: []byte{1, 0, 1, 0}, oob: unix.UnixRights(0, 0, 0, 0, 0, 0, 0, 0, 0)},
	} {
		for _, host := range []bool{true, false} {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			var l protocol.Link
			if host {
				l, err = protocol.NewHostDescriptors(fds[0])
			} else {
				l, err = protocol.NewAgentDescriptors(fds[0])
			}
			if err != nil {
				t.Fatal(err)
			}
			before := descriptors(t)
			if err := unix.Sendmsg(fds[1], p.packet, p.oob, nil, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Receive(); !errors.Is(err, protocol.ErrMalformed) {
				t.Errorf("%s: %v", name, err)
			}
			if after := descriptors(t); after != before {
				t.Errorf("%s: %d descriptors before and %d after", name, before, after)
			}
			_, _ = l.Close(), unix.Close(fds[1])
		}
	}
	if _, err := protocol.NewAgentDescriptors(int(null.Fd())); err == nil {
		t.Error("a file was taken for a socket")
	}
	if _, err := protocol.NewHostDescriptors(-1); err == nil {
		t.Error("nothing was taken for a socket")
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// wire is a stream of bytes that was recorded; what is written to it is lost.
type wire struct{ io.Reader }

func (wire) Write(b []byte) (int, error) { return len(b), nil }
func (wire) Close() error                { return nil }

func TestBadFrames(t *testing.T) {
	// More than a pipe takes while nobody reads: the stream is there until it is closed.
	stuck := slices.Repeat(append([]byte{2, 2, 0x80, 0x80, 0x02}, make([]byte, 32<<10)...), 4)
	for name, b := range map[string][]byte{
		"nothing":        {},
		"cut":            {1, 0},
		"cut later":      {1, 0, 9, 1},
		"unknown":        {9, 0, 0},
		"long data":      {2, 1, 0xff, 0xff, 0x7f},
		"long message":   {1, 0, 0xff, 0xff, 0xff, 0x7f},
		"empty data":     {2, 2, 0},
		"bad credit":     {4, 2, 1, 0xff},
		"large":          {1, 0, 4, 21, 1, 1, 0},
		"number of ours": {1, 0, 6, 21, 0, 1, 1, 1, 3},
		"twice the same": {1, 0, 8, 21, 0, 1, 2, 1, 2, 1, 2},
		"after the end":  slices.Concat([]byte{1, 0, 6, 21, 0, 1, 1, 1, 2}, stuck, []byte{3, 2, 0, 3, 2, 0}),
		"credit unasked": {1, 0, 6, 21, 0, 1, 1, 2, 2, 4, 2, 1, 1},
	} {
		l := protocol.NewHostFramed(wire{bytes.NewReader(b)})
		var err error
		for err == nil {
			var m *protocol.Message
			if m, err = l.Receive(); m != nil {
				for _, s := range m.Streams {
					defer s.Close()
				}
			}
		}
		if errors.Is(err, io.EOF) != (name == "nothing") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTooMuchData sends more than there is room for.
func TestTooMuchData(t *testing.T) {
	b := []byte{1, 0, 6, 21, 0, 1, 1, 1, 2}
	for range 20 {
		b = append(append(b, 2, 2, 0x80, 0x80, 0x02), make([]byte, 32<<10)...)
	}
	l := protocol.NewHostFramed(wire{bytes.NewReader(b)})
	m, err := l.Receive()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Streams[0].Close()
	if _, err := l.Receive(); !errors.Is(err, protocol.ErrMalformed) {
		t.Errorf("data beyond the credit gives %v", err)
	}
}

// FuzzFrames gives both ends anything: they must end, and not panic.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{1, 0, 6, 21, 0, 1, 1, 1, 2, 2, 2, 1, 'x', 3, 2, 0})
	f.Fuzz(func(_ *testing.T, b []byte) {
		for _, l := range []protocol.Link{protocol.NewHostFramed(wire{bytes.NewReader(b)}), protocol.NewAgentFramed(wire{bytes.NewReader(b)})} {
			for {
				m, err := l.Receive()
				if err != nil {
					break
				}
				for _, s := range m.Streams {
					s.Finish()
					s.Close()
				}
			}
			_ = l.Close()
		}
	})
}
