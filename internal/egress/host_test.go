package egress_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

// The host's own world, as far as a test can know it.
func TestHost(t *testing.T) {
	var h egress.Host
	server := site(t)
	to := netip.MustParseAddrPort(server)
	var asked []netip.AddrPort
	conn, err := h.Dial(t.Context(), to, func(a netip.AddrPort) error {
		asked = append(asked, a)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if !slices.Equal(asked, []netip.AddrPort{to}) {
		t.Errorf("asked about %v", asked)
	}
	no := errors.New("no")
	if _, err := h.Dial(t.Context(), to, func(netip.AddrPort) error { return no }); !errors.Is(err, no) {
		t.Errorf("against the check: %v", err)
	}
	if own := h.Own(); !slices.Contains(own, netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("own: %v", own)
	}
	if h.Roots() != nil {
		t.Error("roots of its own")
	}
	// A name of one part that only the host's file knows.
	if list, err := h.Lookup(t.Context(), "localhost"); err != nil || !slices.ContainsFunc(list, func(a netip.Addr) bool { return a.Unmap().IsLoopback() }) {
		t.Errorf("localhost: %v, %v", list, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if list, err := h.Lookup(t.Context(), "localhost"); err != nil || !list[0].Unmap().IsLoopback() {
		t.Errorf("what the host's own table has: %v, %v", list, err)
	}
	if list, err := h.Lookup(ended, "nothing"); err == nil {
		t.Errorf("a name that nobody is asked about: %v", list)
	}
	if list, err := h.Lookup(ended, "nothing.invalid"); err == nil {
		t.Errorf("a name that never is: %v", list)
	}
}

// Through the host's own resolver, to a server of the host that was opened.
func TestHostGateway(t *testing.T) {
	server := site(t)
	_, port, _ := net.SplitHostPort(server)
	n, _ := strconv.Atoi(port)
	l, err := net.Listen("tcp4", "127.77.1.1:"+port) // the port that is dialled is the one that is asked for
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	in := &inside{t: t, dns: pc.LocalAddr().String(), port: n, lines: make(chan cove.Connection, 100)}
	in.Gateway, err = egress.Open(egress.Config{
		Network: cove.Network{Mode: cove.NetworkOpen}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")},
	}, egress.Sockets{DNS: []net.PacketConn{pc}, TCP: []net.Listener{l}, Range: netip.MustParsePrefix("127.64.0.0/12")}, egress.Options{
		OnConnection: func(c cove.Connection) { in.lines <- c },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if a, err := in.resolve("localhost.test"); err != nil || !egress.Reachable(a, []netip.Prefix{testRange}, nil) {
		t.Errorf("%s, %v", a, err)
	}
	if err := cut(in.raw("127.77.1.1")); err != nil {
		t.Errorf("an address that stands for no name: %v", err)
	}
	if c := in.line("127.77.1.1"); c.Allowed {
		t.Errorf("line: %+v", c)
	}
}
