//go:build linux

package docker_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/provider/docker"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// world is an internet with one server, which has two names.
type world struct{ server string }

var worldNames = map[string]netip.Addr{
	"good.test": netip.AddrFrom4([4]byte{93, 184, 216, 34}), "other.test": netip.AddrFrom4([4]byte{93, 184, 216, 35}),
	"inner.test": netip.AddrFrom4([4]byte{10, 1, 2, 3}),
	"localhost":  netip.AddrFrom4([4]byte{127, 0, 0, 1}),
}

// web is the server, which ends with the tests: what a single one opens it must
// close again.
var web = sync.OnceValue(func() string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "hello key=%s\n", r.Header.Get("X-Key"))
	}))
	return s.Listener.Addr().String()
})

func (w *world) Lookup(_ context.Context, name string) ([]netip.Addr, error) {
	if a, ok := worldNames[name]; ok {
		return []netip.Addr{a}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (w *world) Dial(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
	if err := check(to); err != nil {
		return nil, err
	}
	if to.Port() != 80 && to.Port() != 8080 {
		return nil, errors.New("nobody is there")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", w.server)
}

func (w *world) Own() []netip.Addr     { return nil }
func (w *world) Roots() *x509.CertPool { return nil }

// outward is a provider whose sandboxes have somewhere to go.
type outward struct{ *docker.Provider }

// Unwrap lets [cove.As] find the powers below.
func (o outward) Unwrap() cove.Provider { return o.Provider }

// Outside implements [providertest.Outward].
func (o outward) Outside() providertest.Outside {
	return providertest.Outside{Name: "good.test", Other: "other.test", Port: 8080, Text: "hello key=\n"}
}

// openOut opens a provider whose sandboxes have somewhere to go.
func openOut(t *testing.T, cfg docker.Config) cove.Provider {
	t.Helper()
	cfg.Egress.World = &world{web()}
	return outward{openAt(t, cfg)}
}

// TestSecretOnItsWayOut is about a credential that a sandbox uses and never sees.
func TestSecretOnItsWayOut(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	cfg.Egress.World = &world{web()}
	cfg.Egress.Secrets = []egress.Secret{{Name: "key", Hosts: []string{"good.test"}, Header: "X-Key", Value: "hunter2", Plain: true}}
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	s := create(t, p, cove.Spec{Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"good.test"}, Secrets: []string{"key"}}})
	if got := output(t, s, "curl -sS -m 20 http://good.test/"); got != "hello key=hunter2\n" {
		t.Errorf("the request arrives without its secret: %q", got)
	}
	if got := output(t, s, "env; cat /tmp/.cove/ca.pem"); strings.Contains(got, "hunter2") || !strings.Contains(got, "SSL_CERT_FILE=/tmp/.cove/ca.pem") || !strings.Contains(got, "BEGIN CERTIFICATE") {
		t.Errorf("the sandbox sees %.500q", got)
	}
	if _, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"good.test"}, Secrets: []string{"none"}}}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a secret that is unknown gives %v", err)
	}
	out, _ := cove.As[cove.Egress](s)
	for what, n := range map[string]cove.Network{
		"another mode": {Mode: cove.NetworkNone}, "the port of names": {Mode: cove.NetworkAllow, Allow: []string{"good.test:53"}},
	} {
		if err := out.SetNetwork(t.Context(), n); cove.CodeOf(err) != cove.Unsupported {
			t.Errorf("%s gives %v", what, err)
		}
	}
}

// TestRefusedOnItsWayOut is about a name on the list that leads to a private address:
// a program sees that it was refused, and not an end without a word.
func TestRefusedOnItsWayOut(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	cfg.Egress.World = &world{web()}
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	s := create(t, p, cove.Spec{Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"inner.test"}}})
	for name, url := range map[string]string{"a private address": "http://inner.test/", "the sandbox itself": "http://127.0.0.1/"} {
		if got := output(t, s, "curl -sS -m 20 "+url); !strings.Contains(got, "Connection reset") && !strings.Contains(got, "connect to server") {
			t.Errorf("%s: curl says %q", name, got)
		}
	}
}

// output is what a script prints.
func output(t *testing.T, s cove.Sandbox, script string) string {
	t.Helper()
	var b strings.Builder
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", script}, Stdout: &b, Stderr: &b})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
