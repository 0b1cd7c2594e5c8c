//go:build linux

package guest_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// named makes a sandbox that asks its own loopback for names.
func named(t testing.TB) func(*stage) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 127.0.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	return func(s *stage) { s.Names = file }
}

// world has one server, under all names.
type world struct{ server string }

func (world) Lookup(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}

func (w world) Dial(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
	if err := check(to); err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", w.server)
}

func (world) Own() []netip.Addr     { return nil }
func (world) Roots() *x509.CertPool { return nil }

const outsideText = "hello from outside\n"

// newWorld is one whose server answers a text.
func newWorld(t testing.TB) world {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, outsideText)
	}))
	t.Cleanup(s.Close)
	return world{s.Listener.Addr().String()}
}

// portsOf are those that a network needs.
func portsOf(t testing.TB, n cove.Network) []uint16 {
	t.Helper()
	more, err := egress.Ports(n.Allow)
	if err != nil {
		t.Fatal(err)
	}
	return append([]uint16{80, 443}, more...)
}

// gateway opens a way out as providers do.
func gateway(t testing.TB, c *guest.Conn, n cove.Network, w egress.World) *egress.Gateway {
	t.Helper()
	ways, err := c.Listen(t.Context(), true, portsOf(t, n)...)
	if err != nil {
		t.Fatal(err)
	}
	g, err := egress.Open(egress.Config{Network: n}, sockets(ways), egress.Options{World: w})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func sockets(w *guest.Ways) egress.Sockets {
	s := egress.Sockets{TCP: []net.Listener{w.TCP}, Range: w.Range}
	if w.Packets != nil {
		s.DNS, s.Stream = []net.PacketConn{w.Packets}, []net.Listener{w.Stream}
	}
	return s
}

// get fetches a page, and prints nothing if it cannot.
func get(t testing.TB, c *guestAt, url string) string {
	t.Helper()
	const script = "import sys, urllib.request as r\ntry: sys.stdout.write(r.urlopen(sys.argv[1], timeout=20).read().decode())\nexcept Exception as e: print(e, file=sys.stderr)"
	_, out, _ := run(t, c, cove.Command{Argv: []string{"python3", "-c", script, url}})
	return out
}

// TestEgressOverFrames is about a way out of a sandbox that has no network.
func TestEgressOverFrames(t *testing.T) {
	h := build(t, named(t))
	c, _ := h.enter()
	n := cove.Network{Mode: cove.NetworkAllow, Allow: []string{"example.com:8080", "*.example.org"}}
	g := gateway(t, c.Conn, n, newWorld(t))
	defer func() { _ = g.Close() }()
	for url, want := range map[string]string{
		"http://example.com:8080/": outsideText, "http://a.example.org/": outsideText,
		"http://example.net/": "", "http://example.com:8081/": "", "http://127.0.0.1:8080/": "",
	} {
		if got := get(t, c, url); got != want {
			t.Errorf("%s gives %q", url, got)
		}
	}
	// Over TCP, too, names are answered; and both ways carry much.
	const much = 4 << 20
	const script = `
import socket, sys, struct
q = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03com\x00\x00\x01\x00\x01"
s = socket.create_connection(("127.0.0.1", 53)); s.sendall(struct.pack(">H", len(q)) + q)
n, = struct.unpack(">H", s.recv(2)); a = s.recv(n)
host = socket.inet_ntoa(a[-4:])
print(host.split(".")[0], socket.gethostbyname("example.com") == host)
w = socket.create_connection((host, 8080))
w.sendall(b"POST / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % int(sys.argv[1]) + b"x" * int(sys.argv[1]))
w.shutdown(socket.SHUT_WR)
got = b""
while True:
    b = w.recv(65536)
    if not b: break
    got += b
print(got.split(b"\r\n\r\n", 1)[1].decode(), end="")
`
	r, out, errs := run(t, c, cove.Command{Argv: []string{"python3", "-c", script, fmt.Sprint(much)}})
	if r.ExitCode != 0 || out != "127 True\n"+outsideText {
		t.Errorf("%+v, %q, %q", r, out, errs)
	}
	// What is listened to is the gateway's alone.
	_, err := c.Listen(t.Context(), false, 8080)
	wants(t, cove.Conflict, err, "a port that is taken")
	_, err = c.Listen(t.Context(), true)
	wants(t, cove.Conflict, err, "the name server's port")
	more, err := c.Listen(t.Context(), false, 9000)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Set(egress.Config{Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"example.net:9000"}}}), g.Listen(sockets(more))); err != nil {
		t.Fatal(err)
	}
	if got := get(t, c, "http://example.net:9000/"); got != outsideText {
		t.Errorf("a port that was added gives %q", got)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if got := get(t, c, "http://example.net:9000/"); got != "" {
		t.Errorf("a way that is closed gives %q", got)
	}
	// The next host opens its own, and its names have addresses elsewhere, mostly.
	second, _ := h.enter()
	g = gateway(t, second.Conn, n, newWorld(t))
	if got := get(t, second, "http://example.com:8080/"); got != outsideText {
		t.Errorf("the way out of the second host gives %q", got)
	}
	_ = second.Close()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestManyWaysOut: a sandbox that opens connections without an end loses them, and
// its host nothing.
func TestManyWaysOut(t *testing.T) {
	h := build(t, named(t))
	c, _ := h.enter()
	ways, err := c.Listen(t.Context(), false, 8080)
	if err != nil {
		t.Fatal(err)
	}
	const script = `
import select, socket
many = []
for i in range(900):
    s = socket.create_connection(("127.64.1.1", 8080))
    many.append(s)
left = {s.fileno() for s in many}
p = select.poll()
for fd in left: p.register(fd, select.POLLIN)
while ready := p.poll(500):
    for fd, _ in ready:
        p.unregister(fd); left.discard(fd)
print(len(left))
`
	// Nobody accepts: as many as may wait stay, and all others are turned away.
	if r, out, errs := run(t, c, cove.Command{Argv: []string{"python3", "-c", script}}); out != "128\n" {
		t.Errorf("%+v, %q, %q", r, out, errs)
	}
	// Those that waited are held, and so are others until there are 512.
	var held []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ways.TCP.Accept()
			if err != nil {
				return
			}
			held = append(held, conn)
		}
	}()
	// How many depends on how fast they are taken.
	r, out, errs := run(t, c, cove.Command{Argv: []string{"python3", "-c", script}})
	if n, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || n < 1 || n > 512-128 {
		t.Errorf("%+v, %q, %q", r, out, errs)
	}
	ways.Close()
	<-done
	for _, conn := range held {
		_ = conn.Close()
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNoWayOut(t *testing.T) {
	h := build(t) // whose user has no low ports
	c, _ := h.enter()
	_, err := c.Listen(t.Context(), false, 80)
	wants(t, cove.Unsupported, err, "a low port")
	_, err = c.Listen(t.Context(), false, make([]uint16, 257)...)
	wants(t, cove.Invalid, err, "too many ports")
	ways, err := c.Listen(t.Context(), false, 8080)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if _, err := ways.TCP.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("who accepts gets %v", err)
	}
	ways.Close()
	_, err = c.Listen(t.Context(), true, 8081)
	wants(t, cove.NotFound, err, "a sandbox that is gone")
	local := connect(t, place{})
	_, err = local.Listen(t.Context(), true, 80)
	wants(t, cove.Unsupported, err, "an agent with descriptors")
}

// outlets is doored with a way out.
type outlets struct {
	*doored

	world world

	mu    sync.Mutex
	gates map[cove.ID]*reaching
}

func (p *outlets) Probe(ctx context.Context) (cove.Capabilities, error) {
	c, err := p.doored.Probe(ctx)
	c.Networks = []cove.NetworkMode{cove.NetworkNone, cove.NetworkAllow}
	c.Powers = append(c.Powers, cove.PowerEgress)
	return c, err
}

func (p *outlets) Outside() providertest.Outside {
	return providertest.Outside{Name: "one.example.com", Other: "two.example.com", Port: 8080, Text: outsideText}
}

func (p *outlets) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	s, err := p.create(ctx, id, spec, named(p.t))
	if err != nil || spec.Network.Mode != cove.NetworkAllow {
		return s, err
	}
	s.h.net = spec.Network
	return p.reach(s), nil
}

func (p *outlets) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	p.mu.Lock()
	r := p.gates[id]
	p.mu.Unlock()
	if r != nil {
		return r, nil
	}
	s, err := p.doored.Attach(ctx, id)
	if err != nil || s.(*doorBox).h.net.Mode == "" {
		return s, err
	}
	return p.reach(s.(*doorBox)), nil
}

func (p *outlets) reach(s *doorBox) *reaching {
	r := &reaching{doorBox: s, p: p, gate: gateway(p.t, s.Conn, s.h.net, p.world), ports: map[uint16]bool{}}
	r.listens(s.h.net)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gates[s.id] = r
	return r
}

func (p *outlets) Remove(ctx context.Context, id cove.ID) error {
	s, err := p.Attach(ctx, id)
	if cove.CodeOf(err) == cove.NotFound {
		return nil
	}
	return errors.Join(err, s.Destroy(ctx))
}

func (p *outlets) Close() error {
	for _, r := range p.gates {
		_ = r.gate.Close()
	}
	return p.doored.Close()
}

// reaching is a sandbox with a way out.
type reaching struct {
	*doorBox

	p     *outlets
	gate  *egress.Gateway
	ports map[uint16]bool
}

var _ cove.Egress = (*reaching)(nil)

func (r *reaching) listens(n cove.Network) (missing []uint16) {
	for _, port := range portsOf(r.p.t, n) {
		if !r.ports[port] {
			r.ports[port] = true
			missing = append(missing, port)
		}
	}
	return missing
}

func (r *reaching) SetNetwork(ctx context.Context, n cove.Network) error {
	if err := r.Ping(ctx); err != nil {
		return err
	}
	if err := (cove.Spec{Network: n}).Validate(); err != nil {
		return err
	}
	if err := r.gate.Set(egress.Config{Network: n}); err != nil {
		return err
	}
	r.h.net = n
	if missing := r.listens(n); len(missing) > 0 {
		ways, err := r.Listen(ctx, false, missing...)
		if err != nil {
			return err
		}
		return r.gate.Listen(sockets(ways))
	}
	return nil
}

func (r *reaching) Connections(ctx context.Context, after int64) iter.Seq2[cove.Connection, error] {
	return func(yield func(cove.Connection, error) bool) {
		if err := r.Ping(ctx); err != nil {
			yield(cove.Connection{}, err)
			return
		}
		for _, c := range r.gate.Connections(after) {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (r *reaching) Destroy(ctx context.Context) error {
	r.p.mu.Lock()
	delete(r.p.gates, r.id)
	r.p.mu.Unlock()
	return errors.Join(r.gate.Close(), r.doorBox.Destroy(ctx))
}
