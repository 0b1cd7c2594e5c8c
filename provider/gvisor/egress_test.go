//go:build linux

package gvisor_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/gvisor"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// world is an internet with one server, at the loopback of the host.
type world struct{ at string }

// What the server is called, and where.
const (
	goodName  = "good.test"
	otherName = "other.test"
	webPort   = 8080
	webText   = "hello"
)

func (w world) Lookup(_ context.Context, name string) ([]netip.Addr, error) {
	switch name {
	case goodName, otherName:
		return []netip.Addr{netip.AddrFrom4([4]byte{93, 184, 216, 34})}, nil
	}
	if name == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (w world) Dial(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
	if err := check(to); err != nil {
		return nil, err
	}
	if to.Port() != webPort {
		return nil, errors.New("nobody is there")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", w.at)
}

func (world) Own() []netip.Addr     { return nil }
func (world) Roots() *x509.CertPool { return x509.NewCertPool() }

// outward is a provider whose sandboxes have something to reach.
type outward struct{ *gvisor.Provider }

func (outward) Outside() providertest.Outside {
	return providertest.Outside{Name: goodName, Other: otherName, Port: webPort, Text: webText}
}

// web is the server, which ends with the tests: what a single one opens it must
// close again.
var web = sync.OnceValue(func() string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, webText) }))
	return s.Listener.Addr().String()
})

// openWith opens a provider in such a world.
func openWith(t *testing.T, change func(*gvisor.Config)) cove.Provider {
	t.Helper()
	c := config(t)
	c.Egress.World = world{web()}
	if change != nil {
		change(&c)
	}
	p, err := gvisor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	providertest.Ready(t, p)
	return outward{p}
}
