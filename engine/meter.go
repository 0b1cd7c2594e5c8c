package engine

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// book adds what a lease has held since it was last booked, and goes on counting
// from now unless it holds nothing any more.
func (e *Engine) book(l *lease, now time.Time, over bool) {
	l.mu.Lock()
	since := l.heldSince
	if since.IsZero() {
		l.mu.Unlock()
		return
	}
	memory := e.memoryOf(l.rec.Spec)
	if l.heldSince = now; over {
		l.heldSince = time.Time{}
	}
	l.mu.Unlock()
	if d := now.Sub(since); d > 0 {
		e.tenants.add(l.tenant, cove.Consumption{Held: d, MemoryTime: cove.MemoryTimeOf(memory, d)})
	}
}

// bookLast books a lease that has lost its sandbox.
func (e *Engine) bookLast(l *lease) { e.book(l, time.Now(), true) }

// bookAll books all leases of a tenant, or of all of them when it is "".
func (e *Engine) bookAll(tenant string) {
	now := time.Now()
	for _, l := range e.snapshotLeases() {
		if tenant == "" || tenant == l.tenant {
			e.book(l, now, false)
		}
	}
}

// upTo counts what is read from r as sent into a tenant's sandbox.
func (e *Engine) upTo(tenant string, r io.Reader, moved *atomic.Int64) io.Reader {
	return &metered{Reader: r, each: func(n cove.Bytes) {
		moved.Add(int64(n))
		e.tenants.add(tenant, cove.Consumption{Up: n})
	}}
}

// downFrom counts what is read from r as sent out of a tenant's sandbox.
func (e *Engine) downFrom(tenant string, r io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{&metered{Reader: r, each: func(n cove.Bytes) { e.tenants.add(tenant, cove.Consumption{Down: n}) }}, r}
}

// metered is a reader that tells what goes through it.
type metered struct {
	io.Reader

	each func(n cove.Bytes)
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n > 0 {
		m.each(cove.Bytes(n))
	}
	return n, err
}

// bothWays counts what goes through a connection into a tenant's sandbox.
func (e *Engine) bothWays(tenant string, conn net.Conn) net.Conn {
	return &meteredConn{Conn: conn, each: func(by cove.Consumption) { e.tenants.add(tenant, by) }}
}

type meteredConn struct {
	net.Conn

	each func(cove.Consumption)
}

func (m *meteredConn) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if n > 0 {
		m.each(cove.Consumption{Down: cove.Bytes(n)})
	}
	return n, err
}

func (m *meteredConn) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	if n > 0 {
		m.each(cove.Consumption{Up: cove.Bytes(n)})
	}
	return n, err
}
