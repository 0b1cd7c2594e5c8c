//go:build linux

package guest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// waiting bounds the connections that nobody has accepted yet.
const waiting = 128

// Ways are the sockets of a way out of a sandbox that has no network but its own
// loopback: what programs there connect to comes out of them. They end when all
// are closed, or the connection to the agent does; then others can be asked for.
type Ways struct {
	// TCP has the connections to the ports that were asked for, at any address of
	// the loopback. Their LocalAddr is that address.
	TCP net.Listener
	// Packets and Stream are those of the name server, 127.0.0.1:53; nil if it was
	// not asked for.
	Packets net.PacketConn
	Stream  net.Listener
	// Range is where names can have their addresses. It is another one each time,
	// mostly, so that an address that a program remembers is not another name's.
	Range netip.Prefix

	control *os.File // open while the agent listens
	tcp     *queue
	stream  *queue

	mu   sync.Mutex
	open int // sockets that are not closed
}

// Listen opens a way out: at the ports, and with names for the name server too.
// The ports may be below 1024 only where the sandbox lets its user have these. It
// is Conflict if a program has one of them.
func (c *Conn) Listen(ctx context.Context, names bool, ports ...uint16) (*Ways, error) {
	if !c.link.Relayed() || c.version < protocol.Doors {
		return nil, cove.Errorf(cove.Unsupported, "this agent opens no way out")
	}
	if len(ports) > protocol.MaxPorts {
		return nil, cove.InvalidField("network.allow", "names %d ports; the most is %d", len(ports), protocol.MaxPorts)
	}
	mine, theirs, err := protocol.Pipe(protocol.Readable)
	if err != nil {
		return nil, pipeFault(err)
	}
	w := &Ways{control: mine, open: 1, Range: loopbackRange()}
	w.tcp = newQueue(c, w)
	w.TCP = w.tcp
	streams := []*protocol.Stream{theirs}
	if names {
		packets, theirs, err := protocol.Pair()
		if err != nil {
			closeAll(streams)
			_ = mine.Close()
			return nil, pipeFault(err)
		}
		streams = append(streams, theirs)
		w.stream = newQueue(c, w)
		w.Stream, w.Packets = w.stream, newQueries(packets, w)
		w.open += 2
	}
	id, ch, err := c.begin(ctx, nil)
	if err != nil {
		closeAll(streams)
		w.Close()
		return nil, err
	}
	c.mu.Lock()
	if c.ways == nil {
		c.ways = map[uint64]*Ways{}
	}
	c.ways[id] = w
	c.mu.Unlock()
	context.AfterFunc(w.tcp.ctx, func() { c.forgetWays(id) })
	a, err := c.finish(ctx, id, ch, protocol.KindListen, protocol.Listen{Ports: ports, Names: names}.Encode(), streams)
	closeAll(a.streams)
	if err == nil && !a.OK() {
		err = waysFault(a.Reply)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// loopbackRange draws one of the ranges for names: every address in them is the
// sandbox's own, and nobody uses them otherwise.
func loopbackRange() netip.Prefix {
	const first, choices, bits = 64, 32, 15
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{127, first + 2*byte(rand.IntN(choices)), 0, 0}), bits) //nolint:gosec // no secret
}

func waysFault(r protocol.Reply) error {
	port := printable(r.Text)
	switch errno := syscall.Errno(r.Errno); {
	case errno == syscall.EADDRINUSE:
		return cove.Wrap(cove.Conflict, errno, "a program in the sandbox has port %s, which a way out needs", port).
			Remedy("end the program, or have it use another port")
	case errno == syscall.EACCES || errno == syscall.EPERM:
		return cove.Wrap(cove.Unsupported, errno, "the sandbox's user may not have port %s, so it has no way out", port).
			Remedy("set net.ipv4.ip_unprivileged_port_start to 0 in it")
	}
	return fault(r, "port "+port)
}

// Close ends all that is not ended yet.
func (w *Ways) Close() {
	_ = w.TCP.Close()
	if w.Packets != nil {
		_ = w.Packets.Close()
		_ = w.Stream.Close()
	}
}

// less notes that one of the sockets is closed. With the last the agent stops.
func (w *Ways) less() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open--; w.open == 0 {
		_ = w.control.Close()
	}
}

func (c *Conn) forgetWays(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ways, id)
}

// accepted takes the news of a connection. It does not wait.
func (c *Conn) accepted(m *protocol.Message) error {
	a, err := protocol.DecodeAccepted(m.Body)
	if err != nil || len(m.Streams) != 1 || !isConnection(m.Streams[0].FD()) {
		closeAll(m.Streams)
		return protocol.ErrMalformed
	}
	c.mu.Lock()
	w := c.ways[m.ID]
	c.mu.Unlock()
	if w == nil || a.Names && w.stream == nil {
		closeAll(m.Streams)
		return nil
	}
	q := w.tcp
	if a.Names {
		q = w.stream
	}
	stream := m.Streams[0]
	f := stream.File("way")
	defer func() { _ = f.Close() }()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil // no descriptor is left, and he is turned away
	}
	to := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4(a.Address), a.Port))
	q.push(&outward{UnixConn: conn.(*net.UnixConn), to: to, refuse: stream.Refuse})
	return nil
}

// outward is a connection of a program, seen from where it leads to.
type outward struct {
	*net.UnixConn

	to     net.Addr
	refuse func()
}

// SetLinger with 0 makes Close one that the program sees as a reset.
func (o *outward) SetLinger(sec int) error {
	if sec == 0 {
		o.refuse()
	}
	return nil
}

// LocalAddr is the address that the program connected to.
func (o *outward) LocalAddr() net.Addr { return o.to }

// queue is a listener.
type queue struct {
	c      *Conn
	w      *Ways
	ctx    context.Context //nolint:containedctx // of its own life
	cancel context.CancelFunc
	conns  chan *outward
	once   sync.Once
}

var _ net.Listener = (*queue)(nil)

func newQueue(c *Conn, w *Ways) *queue {
	q := &queue{c: c, w: w, conns: make(chan *outward, waiting)}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// push adds a connection, unless too many wait.
func (q *queue) push(conn *outward) {
	select {
	case q.conns <- conn:
		if q.ctx.Err() == nil {
			return
		}
		q.clear() // it was closed meanwhile
	default:
		_ = conn.Close()
	}
}

func (q *queue) clear() {
	for {
		select {
		case conn := <-q.conns:
			_ = conn.Close()
		default:
			return
		}
	}
}

// Accept implements [net.Listener].
func (q *queue) Accept() (net.Conn, error) {
	if q.ctx.Err() != nil {
		return nil, net.ErrClosed
	}
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.ctx.Done():
	case <-q.c.ended.Done():
	}
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (q *queue) Close() error {
	q.once.Do(func() {
		q.cancel()
		q.clear()
		q.w.less()
	})
	return nil
}

// Addr implements [net.Listener].
func (q *queue) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero} }

// queries are the packets of a name server.
type queries struct {
	*os.File // for deadlines

	r    *protocol.RecordReader
	w    *Ways
	once sync.Once
}

var _ net.PacketConn = (*queries)(nil)

func newQueries(f *os.File, w *Ways) *queries {
	return &queries{File: f, r: protocol.NewRecordReader(f), w: w}
}

// ReadFrom implements [net.PacketConn].
func (q *queries) ReadFrom(b []byte) (int, net.Addr, error) {
	kind, payload, err := q.r.Next()
	if err != nil || kind != protocol.RecordData {
		return 0, nil, net.ErrClosed // what comes after is not to be understood
	}
	one, err := protocol.DecodeQuery(payload)
	if err != nil {
		return 0, nil, net.ErrClosed
	}
	return copy(b, one.Packet), net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4(one.Address), one.Port)), nil
}

// WriteTo implements [net.PacketConn].
func (q *queries) WriteTo(b []byte, to net.Addr) (int, error) {
	at, ok := to.(*net.UDPAddr)
	if !ok || len(b) > protocol.MaxQuery || !at.AddrPort().Addr().Unmap().Is4() {
		return 0, errors.New("it cannot be sent there")
	}
	ap := at.AddrPort()
	one := protocol.Query{Address: ap.Addr().Unmap().As4(), Port: ap.Port(), Packet: string(b)}
	if _, err := q.Write(protocol.AppendRecord(nil, protocol.RecordData, one.Encode())); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close implements [net.PacketConn].
func (q *queries) Close() error {
	q.once.Do(func() {
		_ = q.File.Close()
		q.w.less()
	})
	return nil
}

// LocalAddr implements [net.PacketConn].
func (q *queries) LocalAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 53} }
