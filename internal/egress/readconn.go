package egress

import (
	"context"
	"net"
	"sync"
	"time"
)

// readConn is the inside's end of a connection that is read. It counts.
type readConn struct {
	net.Conn

	link  *link
	rate  int64
	first [1]byte
	ahead bool // first was peeked at, and not read yet
	once  sync.Once
	done  chan struct{} // closed when it is closed
}

// peek waits for the first byte.
func (c *readConn) peek() error {
	_ = c.SetReadDeadline(time.Now().Add(headPatience)) // then the read fails
	if _, err := c.Conn.Read(c.first[:]); err != nil {
		return err
	}
	c.ahead = true
	return c.SetReadDeadline(time.Time{})
}

// Read implements [net.Conn]. Only one goroutine reads.
func (c *readConn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if c.ahead {
		c.ahead = false
		b[0] = c.first[0]
		c.link.sent.Add(1)
		return 1, nil
	}
	n, err := c.Conn.Read(b)
	c.link.sent.Add(int64(n))
	c.count(n)
	return n, err
}

// Write implements [net.Conn].
func (c *readConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.link.received.Add(int64(n))
	c.count(n)
	return n, err
}

func (c *readConn) count(n int) {
	if n > 0 {
		c.link.touch()
		if c.rate > 0 {
			c.link.pay(int64(n), c.rate)
		}
	}
}

// Close implements [net.Conn].
func (c *readConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.done) })
	return err
}

// handoff is a listener that gives out connections that are there already.
type handoff struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newHandoff() *handoff {
	return &handoff{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// give reports whether somebody took the connection.
func (h *handoff) give(ctx context.Context, c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.closed:
	case <-ctx.Done():
	}
	return false
}

// Accept implements [net.Listener].
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (h *handoff) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements [net.Listener].
func (*handoff) Addr() net.Addr { return &net.TCPAddr{} }
