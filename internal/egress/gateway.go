package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// Sockets are those through which somebody reaches a gateway.
type Sockets struct {
	DNS    []net.PacketConn // of the name server
	Stream []net.Listener   // of the name server, over TCP
	TCP    []net.Listener   // for the addresses of names, and with mode open for all
	// Range is where names get addresses; the zero value is [Range]. The first 256
	// of it stand for no name.
	Range netip.Prefix
}

func (s Sockets) close() {
	for _, c := range s.DNS {
		_ = c.Close()
	}
	for _, l := range append(s.Stream, s.TCP...) {
		_ = l.Close()
	}
}

// Options are what a gateway can be given besides.
type Options struct {
	// World is where connections go; nil is this machine's.
	World World
	// OnConnection is called for each line of the journal, one at a time or
	// several at once. It must not wait for long, nor call the gateway.
	OnConnection func(cove.Connection)
}

// Gateway is a way out. Methods are safe for concurrent use.
type Gateway struct {
	world   World
	names   *names
	journal journal
	policy  atomic.Pointer[policy]
	queries bucket // of names
	fresh   bucket // new connections
	bytes   bucket
	http    *http.Server // reads what secrets are put into
	handoff *handoff     // its listener

	ctx    context.Context //nolint:containedctx // of the gateway's own life
	cancel context.CancelFunc
	busy   sync.WaitGroup

	mu      sync.Mutex
	sockets Sockets
	live    map[*link]struct{} // guarded by mu
	streams int                // connections for DNS
	closed  bool
}

// Open starts a gateway on sockets, which are its own from now on, whatever is
// returned.
func Open(c Config, s Sockets, o Options) (*Gateway, error) {
	p, err := compile(c)
	if err == nil && s.Range.IsValid() && (!s.Range.Addr().Is4() || s.Range.Bits() > 15) {
		err = cove.InvalidField("range", "%s is too small for the addresses of names", s.Range)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	if !s.Range.IsValid() {
		s.Range = Range
	}
	if o.World == nil {
		o.World = &Host{}
	}
	g := &Gateway{world: o.World, names: newNames(s.Range), journal: journal{tell: o.OnConnection}, sockets: Sockets{Range: s.Range}, live: map[*link]struct{}{}}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.policy.Store(p)
	g.handoff = newHandoff()
	g.http = g.server()
	g.busy.Go(func() { _ = g.http.Serve(g.handoff) }) // it ends when it is closed
	g.busy.Go(g.watch)
	_ = g.Listen(s) // it is not closed yet
	return g, nil
}

// Listen adds sockets, such as those of ports that a new list names. They are the
// gateway's from now on; their Range does not matter.
func (g *Gateway) Listen(s Sockets) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		s.close()
		return closedError()
	}
	g.sockets.DNS = append(g.sockets.DNS, s.DNS...)
	g.sockets.Stream = append(g.sockets.Stream, s.Stream...)
	g.sockets.TCP = append(g.sockets.TCP, s.TCP...)
	for _, c := range s.DNS {
		g.busy.Go(func() { g.servePackets(c) })
	}
	for _, l := range s.Stream {
		g.busy.Go(func() { g.accept(l, g.admitStream) })
	}
	for _, l := range s.TCP {
		g.busy.Go(func() { g.accept(l, g.admit) })
	}
	return nil
}

func closedError() error {
	return cove.Errorf(cove.Unavailable, "the way out of the sandbox is closed")
}

// Set replaces the rules, the secrets and the limits. Connections that are not
// allowed any more, or that a secret now concerns otherwise, are ended.
func (g *Gateway) Set(c Config) error {
	p, err := compile(c)
	if err != nil {
		return err
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return closedError()
	}
	g.policy.Store(p)
	own := g.world.Own()
	var end []*link
	for l := range g.live {
		if !l.stands(p, own) {
			end = append(end, l)
		}
	}
	g.mu.Unlock()
	for _, l := range end {
		l.end("the rules were changed")
	}
	return nil
}

// Connections returns what is known of connections with numbers above after,
// oldest first: those that have ended and those that were refused. Only the
// newest are kept.
func (g *Gateway) Connections(after int64) []cove.Connection { return g.journal.after(after) }

// closePatience bounds the wait for what is being done; nothing should take long
// once its sockets are closed.
const closePatience = 5 * time.Second

// Close ends all connections and frees the sockets. It is idempotent.
func (g *Gateway) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	var end []*link
	for l := range g.live {
		end = append(end, l)
	}
	sockets := g.sockets
	g.mu.Unlock()
	g.cancel()
	sockets.close()
	for _, l := range end {
		l.end("the way out was closed")
	}
	_ = g.http.Close() // its connections are ours, and closed
	done := make(chan struct{})
	go func() {
		g.busy.Wait()
		close(done)
	}()
	late := time.NewTimer(closePatience)
	defer late.Stop()
	select {
	case <-done:
		return nil
	case <-late.C:
		return cove.Errorf(cove.Timeout, "the way out of a sandbox was closed, and connections of it still end")
	}
}

// stopped reports whether an error of a socket is its end. Others are waited out
// for a moment, such as when there is no descriptor left.
func (g *Gateway) stopped(err error) bool {
	if errors.Is(err, net.ErrClosed) || g.ctx.Err() != nil {
		return true
	}
	pause := time.NewTimer(50 * time.Millisecond)
	defer pause.Stop()
	select {
	case <-pause.C:
		return false
	case <-g.ctx.Done():
		return true
	}
}

// accept hands out connections until the listener is closed.
func (g *Gateway) accept(l net.Listener, admit func(net.Conn)) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			admit(conn)
		case g.stopped(err):
			return
		}
	}
}

// admitStream lets a connection for DNS in, if there are not too many.
func (g *Gateway) admitStream(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.streams >= dnsMost {
		_ = conn.Close()
		return
	}
	g.streams++
	g.busy.Go(func() {
		g.serveStream(conn)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.streams--
	})
}
