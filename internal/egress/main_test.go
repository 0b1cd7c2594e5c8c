package egress_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an internet in which every server is at the loopback.
type world struct {
	mu     sync.Mutex
	answer map[string]func() []netip.Addr // guarded by mu
	server map[netip.Addr]string          // where an address really is
	looked []string
	dialed []netip.AddrPort
	roots  *x509.CertPool
	own    []netip.Addr
	pass   func(netip.AddrPort) netip.AddrPort // what is really dialled
}

func newWorld() *world {
	return &world{answer: map[string]func() []netip.Addr{}, server: map[netip.Addr]string{}}
}

// put makes a name lead to addresses, and the first of them to a server.
func (w *world) put(name, server string, addrs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []netip.Addr
	for _, a := range addrs {
		list = append(list, netip.MustParseAddr(a))
	}
	w.answer[name] = func() []netip.Addr { return append([]netip.Addr(nil), list...) }
	w.server[list[0].Unmap()] = server
}

func (w *world) Lookup(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = append(w.looked, name)
	if f := w.answer[name]; f != nil {
		return f(), nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true, Server: "10.9.8.7:53"}
}

func (w *world) Dial(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, to)
	at, ok := w.server[to.Addr()]
	pass := w.pass
	w.mu.Unlock()
	if pass != nil {
		to = pass(to)
	}
	if err := check(to); err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("dial tcp " + to.String() + ": no route via 10.0.0.1")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", at)
}

func (w *world) Own() []netip.Addr     { return w.own }
func (w *world) Roots() *x509.CertPool { return w.roots }

func (w *world) lookups() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.looked...)
}

func (w *world) dials() []netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]netip.AddrPort(nil), w.dialed...)
}

// inside is what a sandbox sees of a gateway.
type inside struct {
	*egress.Gateway

	t     testing.TB
	dns   string
	over  string
	port  int
	lines chan cove.Connection
}

// testRange is where names get addresses in tests: what of the loopback nobody
// uses.
var testRange = netip.MustParsePrefix("127.64.0.0/10")

func open(t testing.TB, w *world, c func(port int) egress.Config) *inside {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	in := &inside{t: t, dns: pc.LocalAddr().String(), over: over.Addr().String(), lines: make(chan cove.Connection, 1<<15)}
	in.port = tcp.Addr().(*net.TCPAddr).Port
	in.Gateway, err = egress.Open(c(in.port), egress.Sockets{
		DNS: []net.PacketConn{pc}, Stream: []net.Listener{over}, TCP: []net.Listener{tcp}, Range: testRange,
	}, egress.Options{World: w, OnConnection: func(c cove.Connection) { in.lines <- c }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

// allow is a config with a list; "%" in a host stands for the port.
func allow(hosts ...string) func(int) egress.Config {
	return func(port int) egress.Config {
		var list []string
		for _, h := range hosts {
			list = append(list, strings.ReplaceAll(h, "%", strconv.Itoa(port)))
		}
		return egress.Config{Network: cove.Network{Mode: cove.NetworkAllow, Allow: list}}
	}
}

// resolve asks as a program would.
func (in *inside) resolve(name string) (netip.Addr, error) {
	r := &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		at := in.dns
		if strings.HasPrefix(network, "tcp") {
			at = in.over
		}
		return (&net.Dialer{}).DialContext(ctx, network, at)
	}}
	list, err := r.LookupNetIP(in.t.Context(), "ip4", strings.TrimSuffix(name, ".")+".")
	if err != nil {
		return netip.Addr{}, err
	}
	return list[0].Unmap(), nil
}

// dial connects to a name.
func (in *inside) dial(name string) (net.Conn, error) {
	a, err := in.resolve(name)
	if err != nil {
		return nil, err
	}
	return in.raw(a.String())
}

// raw connects to an address.
func (in *inside) raw(addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(in.t.Context(), "tcp", net.JoinHostPort(addr, strconv.Itoa(in.port)))
}

// line waits for one that is about a host.
func (in *inside) line(host string) cove.Connection {
	in.t.Helper()
	for {
		select {
		case c := <-in.lines:
			if c.Host == host {
				return c
			}
		case <-time.After(10 * time.Second):
			in.t.Fatalf("no line about %s", host)
		}
	}
}

// dead reports whether a connection was cut off without an answer.
func dead(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = fmt.Fprintf(conn, "GET / HTTP/1.0\r\n\r\n")
	n, err := conn.Read(make([]byte, 1))
	if n > 0 || err == nil {
		return errors.New("it was answered")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("it hangs")
	}
	return nil
}

// cut reports whether a connection was refused or cut off.
func cut(conn net.Conn, err error) error {
	if err != nil {
		if errors.Is(err, syscall.ECONNRESET) {
			return nil // before we came to say anything
		}
		return err
	}
	defer conn.Close()
	return dead(conn)
}
