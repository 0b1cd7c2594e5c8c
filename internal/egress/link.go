package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// target is what a connection is for: a name, or with mode open an address.
type target struct {
	name string // "" for an address
	addr netip.Addr
	port uint16
}

func (t target) host() string {
	if t.name != "" {
		return t.name
	}
	return t.addr.String()
}

// link is one connection from inside, with what it leads to.
type link struct {
	g      *Gateway
	target target
	inside net.Conn
	begun  time.Time
	ctx    context.Context //nolint:containedctx // of the connection's own life
	cancel context.CancelFunc
	// sent and received count bytes, as the inside sees it.
	sent, received atomic.Int64
	active         atomic.Int64 // when a byte last went through, in Unix nanoseconds
	injects        bool         // it is read, to put secrets in
	secure         bool         // of one that is read: with TLS
	proxy          http.Handler // of one that is read

	mu      sync.Mutex
	address string   // guarded by mu; what was dialled
	outside net.Conn // of a link that is not read
	why     string   // of its end
	refused bool
	ended   bool
}

// admit begins a connection from inside, or resets it.
func (g *Gateway) admit(conn net.Conn) {
	p := g.policy.Load()
	l := &link{g: g, inside: conn, begun: time.Now()}
	l.touch()
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		reset(conn)
		return
	}
	l.target = target{addr: local.Addr().Unmap().WithZone(""), port: local.Port()}
	if ok, tell := g.fresh.take(p.limits.PerSecond); !ok {
		reset(conn)
		if tell {
			l.refuse(fmt.Sprintf("more than %d new connections in a second", p.limits.PerSecond))
		}
		return
	}
	if why := g.find(p, &l.target); why != "" {
		reset(conn)
		l.refuse(why)
		return
	}
	l.injects = l.target.name != "" && p.injects(l.target.name, l.target.port)
	if !g.begin(l, p) {
		reset(conn)
		l.refuse(fmt.Sprintf("more than %d connections at once", p.limits.Connections))
	}
}

// begin starts a link, unless there are too many.
func (g *Gateway) begin(l *link, p *policy) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		reset(l.inside)
		return true
	}
	if len(g.live) >= p.limits.Connections {
		return false
	}
	l.ctx, l.cancel = context.WithCancel(g.ctx)
	g.live[l] = struct{}{}
	g.busy.Go(func() { l.run(p) })
	return true
}

// find says what a connection is for, and why it may not be.
func (g *Gateway) find(p *policy, t *target) (why string) {
	if !g.names.from.Contains(t.addr) {
		if !p.rules.open {
			return "an address was asked for, not a name"
		}
		return ""
	}
	name, ok := g.names.name(t.addr)
	if !ok {
		return "the address stands for no name"
	}
	t.name = name
	if p.rules.allows(name, t.port) {
		return ""
	}
	if p.rules.knows(name) {
		return "the port is not on the list"
	}
	return "the name is not on the list"
}

// stands reports whether a connection may go on under a policy.
func (l *link) stands(p *policy, own []netip.Addr) bool {
	if l.target.name == "" {
		return p.rules.open && reachable(l.target.addr, p.private, own)
	}
	l.mu.Lock()
	address := l.address
	l.mu.Unlock()
	if a, err := netip.ParseAddrPort(address); err == nil && !reachable(a.Addr(), p.private, own) {
		return false
	}
	return p.rules.allows(l.target.name, l.target.port) && p.injects(l.target.name, l.target.port) == l.injects
}

// refuse writes down a connection that never was.
func (l *link) refuse(why string) {
	l.g.journal.add(cove.Connection{At: l.begun, Protocol: "tcp", Host: l.target.host(), Port: int(l.target.port), Why: why})
}

// run carries the connection to its end.
func (l *link) run(p *policy) {
	defer l.finish()
	// The policy may have changed between the decision and the list of the live.
	if now := l.g.policy.Load(); now != p && !l.stands(now, l.g.world.Own()) {
		l.end("the rules were changed")
		return
	}
	if l.injects {
		l.read(p)
		return
	}
	conn, err := l.dial(l.ctx, p)
	if err != nil {
		l.end(err.Error())
		return
	}
	l.relay(p, conn)
}

// dial connects to the target, and remembers to what.
func (l *link) dial(ctx context.Context, p *policy) (net.Conn, error) {
	conn, to, err := l.g.dial(ctx, p, l.target)
	if now := l.g.policy.Load(); err == nil && now != p && !reachable(to.Addr(), now.private, l.g.world.Own()) {
		_ = conn.Close() // it was allowed when we began
		err = refusal("the rules were changed")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		_, l.refused = errors.AsType[refusal](err)
		return nil, err
	}
	l.address = to.String()
	if l.ended {
		_ = conn.Close()
		return nil, failure{l.why}
	}
	if !l.injects {
		l.outside = conn
	}
	return conn, nil
}

// end cuts a connection off, for a reason that is written down when it has ended.
// The first reason counts.
func (l *link) end(why string) { l.stop(why, reset) }

func (l *link) stop(why string, each func(net.Conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	if why != "" {
		l.why = why
	}
	l.cancel()
	each(l.inside)
	if l.outside != nil {
		each(l.outside)
	}
}

// deny is end for something that was not allowed.
func (l *link) deny(why string) {
	l.mu.Lock()
	l.refused = l.refused || !l.ended
	l.mu.Unlock()
	l.end(why)
}

// finish closes what is left and writes the connection down.
func (l *link) finish() {
	l.stop("", func(c net.Conn) { _ = c.Close() }) // what was written still arrives
	l.g.mu.Lock()
	delete(l.g.live, l)
	l.g.mu.Unlock()
	l.mu.Lock()
	c := cove.Connection{
		At: l.begun, Protocol: "tcp", Host: l.target.host(), Port: int(l.target.port), Address: l.address, Allowed: !l.refused, Why: l.why,
		Sent: cove.Bytes(l.sent.Load()), Received: cove.Bytes(l.received.Load()), Took: time.Since(l.begun),
	}
	l.mu.Unlock()
	l.g.journal.add(c)
}

func (l *link) touch() { l.active.Store(time.Now().UnixNano()) }

// idle returns how long nothing went through.
func (l *link) idle() time.Duration { return time.Duration(time.Now().UnixNano() - l.active.Load()) }

// reset ends a connection so that the other side notices that it was cut off.
func reset(conn net.Conn) {
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}
