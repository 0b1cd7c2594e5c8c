package escape

import (
	"bufio"
	"context"
	"crypto/x509"
	"io"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Outside is a Provider, or a wrapper of one with Unwrap, whose sandboxes reach a
// [World] and nothing else. Without it, attacks that need servers and names of the
// attacker are not made.
type Outside interface {
	World() *World
}

// World is an internet that belongs to the attacker: names that lead where he
// likes, and a server behind every address, at the loopback of the host. It counts
// who comes. Its methods are those that a gateway wants of the world; they are safe
// for concurrent use.
type World struct {
	// MostNames is how many different names a sandbox may make anybody look up; 0
	// is no bound.
	MostNames int

	server net.Listener
	wait   sync.WaitGroup

	mu         sync.Mutex
	names      map[string]bool // that were looked up since the last attack
	turn       map[string]int
	trespasses []string // addresses that nobody may reach, and that were
}

// The names of a World.
const (
	goodName   = "good.escape.test"   // a public address
	turnName   = "turn.escape.test"   // public and private, by turns
	bothName   = "both.escape.test"   // public and private, at once
	switchName = "switch.escape.test" // public, until somebody connects
	innerName  = "inner.escape.test"  // private
	metaName   = "meta.escape.test"   // the metadata service
	tunnelName = "tunnel.escape.test" // all below it belongs to the attacker
)

var worldNames = []string{goodName, turnName, bothName, switchName, innerName, metaName, "*." + tunnelName}

var (
	publicAddress   = netip.MustParseAddr("93.184.216.34")
	switchedAddress = netip.MustParseAddr("93.184.216.35")
	privateAddress  = netip.MustParseAddr("10.11.12.13")
	metadataAddress = netip.MustParseAddr("169.254.169.254")
)

// NewWorld starts a World. The caller closes it.
func NewWorld() (*World, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it takes no time
	if err != nil {
		return nil, err
	}
	w := &World{server: l, names: map[string]bool{}, turn: map[string]int{}}
	w.wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			w.wait.Go(func() { serve(c) })
		}
	})
	return w, nil
}

// Close ends the server.
func (w *World) Close() error {
	err := w.server.Close()
	w.wait.Wait()
	return err
}

// serve answers one request: with a redirect if it asks for one, and else with
// the greeting.
func serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	line, err := bufio.NewReader(io.LimitReader(c, 4096)).ReadString('\n')
	if err != nil {
		return
	}
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return
	}
	if u, err := url.ParseRequestURI(fields[1]); err == nil && u.Query().Get("to") != "" {
		_, _ = io.WriteString(c, "HTTP/1.0 302 Found\r\nLocation: "+u.Query().Get("to")+"\r\n\r\n")
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\n"+greeting)
}

// Lookup returns what the attacker wants a name to be.
func (w *World) Lookup(_ context.Context, name string) ([]netip.Addr, error) {
	name = strings.TrimSuffix(name, ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = true
	w.turn[name]++
	switch name {
	case turnName:
		return []netip.Addr{[]netip.Addr{publicAddress, privateAddress}[w.turn[name]%2]}, nil
	case bothName:
		return []netip.Addr{publicAddress, privateAddress}, nil
	case switchName:
		return []netip.Addr{switchedAddress}, nil
	case innerName:
		return []netip.Addr{privateAddress}, nil
	case metaName:
		return []netip.Addr{metadataAddress}, nil
	case goodName:
		return []netip.Addr{publicAddress}, nil
	}
	if strings.HasSuffix(name, "."+tunnelName) {
		return []netip.Addr{publicAddress}, nil
	}
	if name == "localhost" || slices.Contains(loopbackNames(), name) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// Dial connects to the server, whatever the address. The address of one name
// turns out to be a private one when it is dialled.
func (w *World) Dial(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
	if to.Addr() == switchedAddress {
		to = netip.AddrPortFrom(privateAddress, to.Port())
	}
	if err := check(to); err != nil {
		return nil, err
	}
	if forbidden(to.Addr()) {
		w.mu.Lock()
		w.trespasses = append(w.trespasses, to.String())
		w.mu.Unlock()
		return nil, errNobody
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", w.server.Addr().String())
}

// Own returns no addresses: the World is no machine.
func (*World) Own() []netip.Addr { return nil }

// Roots returns an empty list: nobody vouches for the World.
func (*World) Roots() *x509.CertPool { return x509.NewCertPool() }

// forget begins a new attack.
func (w *World) forget() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.names)
	w.trespasses = nil
}

// looked returns the names that were looked up.
func (w *World) looked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.names))
}
