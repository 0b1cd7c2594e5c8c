package httpapi_test

import (
	"io"
	"net"
	"testing"

	"github.com/cove-sandbox/cove/internal/httpapi"
)

// fixed is a connection from an address that a test chooses.
type fixed struct {
	net.Conn

	from net.Addr
}

func (f fixed) RemoteAddr() net.Addr { return f.from }

// queue is a listener whose connections a test hands in.
type queue chan net.Conn

func (q queue) Accept() (net.Conn, error) {
	if c, ok := <-q; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (queue) Close() error   { return nil }
func (queue) Addr() net.Addr { return &net.TCPAddr{} }

// come hands a connection in and returns the client's end of it.
func (q queue) come(from string) net.Conn {
	client, server := net.Pipe()
	addr := net.Addr(&net.UnixAddr{Name: from})
	if tcp, err := net.ResolveTCPAddr("tcp", from); err == nil {
		addr = tcp
	}
	q <- fixed{server, addr}
	return client
}

func closed(c net.Conn) bool {
	_, err := c.Read(make([]byte, 1))
	return err == io.EOF //nolint:errorlint // a pipe says exactly this
}

func TestLimit(t *testing.T) {
	q := make(queue, 10)
	var refused []string
	l := httpapi.Limit(q, httpapi.Bounds{All: 4, PerRemote: 2, Refused: func(a net.Addr) { refused = append(refused, a.String()) }})
	accept := func() net.Conn {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	q.come("10.0.0.1:1")
	q.come("10.0.0.1:2")
	first, second := accept(), accept()
	third := q.come("10.0.0.1:3") // one too many of this remote
	q.come("[2001:db8::1]:1")
	q.come("[2001:db8::ffff]:1")
	accept()
	if !closed(third) {
		t.Error("the third of a remote was not closed")
	}
	accept()
	fourth := q.come("10.0.0.2:1") // one too many of all
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	_ = first.Close() // twice gives one place back
	q.come("10.0.0.3:1")
	// fourth was handed in before a place was free, but is looked at after it.
	if a, b := accept(), second; a.RemoteAddr().String() != "10.0.0.2:1" || b.Close() != nil {
		t.Errorf("%s got the free place", a.RemoteAddr())
	}
	accept()
	full := q.come("10.0.0.4:1")
	near := q.come("[2001:db8::2]:1") // its network has two
	close(q)
	if _, err := l.Accept(); err == nil {
		t.Error("a listener that is closed goes on")
	}
	if !closed(full) || !closed(near) {
		t.Error("those beyond the bounds were not closed")
	}
	_ = fourth.Close()
	if len(refused) != 3 || refused[0] != "10.0.0.1:3" {
		t.Errorf("refused were %v", refused)
	}
}

// TestLimitOfTCP: the wrapped connection can still do all that TCP can, and a
// flood leaves those that are there alone.
func TestLimitOfTCP(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, httpapi.Limit(inner, httpapi.Bounds{PerRemote: 3}))
	held := r.dialTCP(inner)
	held2 := r.dialTCP(inner)
	if got := speak(t, held); got != 200 {
		t.Errorf("%d", got)
	}
	if got := speak(t, held2); got != 200 {
		t.Errorf("%d", got)
	}
	last := r.dialTCP(inner)
	if got := speak(t, last); got != 200 {
		t.Errorf("%d", got)
	}
	for range 5 {
		c := r.dialTCP(inner)
		if _, err := io.ReadAll(c); err == nil {
			continue // closed with nothing to say; a reset is as good
		}
	}
	if got := speak(t, held); got != 200 {
		t.Errorf("after a flood: %d", got)
	}
	_ = last.Close()
	for { // the server sees the end of last when it reads next
		c := r.dialTCP(inner)
		if got := trySpeak(c); got == 200 {
			break
		}
	}
}
