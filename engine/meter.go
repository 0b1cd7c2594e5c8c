package engine

import (
	"context"
	"io"
	"math"
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
	memory := l.rec.Spec.Resources.Memory
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

// spend books the CPU time of a program.
func (e *Engine) spend(l *lease, cpu time.Duration) {
	l.mu.Lock()
	l.spent += cpu
	l.mu.Unlock()
	e.tenants.add(l.tenant, cove.Consumption{CPU: cpu})
}

// given bounds what an interpreter says of its own run, which code in it can forge: it
// cannot have taken more than the processors of its session could give.
func (l *lease) given(r cove.Result) time.Duration {
	l.mu.Lock()
	cpus := l.rec.Spec.Resources.CPUs
	l.mu.Unlock()
	if cpus <= 0 {
		return r.CPU
	}
	return min(r.CPU, time.Duration(cpus*float64(r.Wall+saved)))
}

// saved is how much wall time's worth of CPU a session may have left from before.
const saved = 100 * time.Millisecond

// countTime is how long a sandbox may take to say what it used.
const countTime = 2 * time.Second

// spendRest books, before a sandbox goes, the CPU time of programs that nobody
// waited for: all that it counted, without what is booked. One that cannot say it
// any more took what it took.
func (e *Engine) spendRest(ctx context.Context, l *lease, sandbox cove.Sandbox) {
	if sandbox == nil || e.cfg.Fleeting {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	u, err := sandbox.Usage(ctx)
	l.mu.Lock()
	rest := u.CPU - l.spent
	l.spent = 0
	l.mu.Unlock()
	if err == nil && rest > 0 {
		e.tenants.add(l.tenant, cove.Consumption{CPU: rest})
	}
}

// spentBefore takes what a sandbox has used as booked: the last server booked it,
// or it was lost with it. Nothing is counted twice.
func (e *Engine) spentBefore(ctx context.Context, l *lease, sandbox cove.Sandbox) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	u, err := sandbox.Usage(ctx)
	if err != nil {
		u.CPU = math.MaxInt64 / 2 // more than it will ever count
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent = u.CPU
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

func (m *meteredConn) CloseWrite() error { return closeWrite(m.Conn) }
