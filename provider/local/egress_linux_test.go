//go:build linux

package local_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// outside is an internet in which every server is at the loopback of the host.
type outside struct {
	names  map[string]netip.Addr
	server map[netip.AddrPort]string
	roots  *x509.CertPool
}

func (o *outside) Lookup(_ context.Context, name string) ([]netip.Addr, error) {
	if a, ok := o.names[name]; ok {
		return []netip.Addr{a}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (o *outside) Dial(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
	if err := check(to); err != nil {
		return nil, err
	}
	at, ok := o.server[to]
	if !ok {
		return nil, errors.New("nobody is there")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", at)
}

func (o *outside) Own() []netip.Addr     { return nil }
func (o *outside) Roots() *x509.CertPool { return o.roots }

// newOutside has a site at good.test and api.test, plain and with TLS.
func newOutside(t *testing.T) *outside {
	say := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = fmt.Fprintf(w, "hello %s key=%s body=%s", r.Host, r.Header.Get("X-Key"), body)
	})
	plain, secure := httptest.NewServer(say), httptest.NewUnstartedServer(say)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	o := &outside{names: map[string]netip.Addr{}, server: map[netip.AddrPort]string{}, roots: x509.NewCertPool()}
	o.roots.AddCert(secure.Certificate())
	for i, name := range []string{"good.test", "example.com", "later.test"} {
		a := netip.AddrFrom4([4]byte{93, 184, 216, byte(34 + i)})
		o.names[name] = a
		o.server[netip.AddrPortFrom(a, 80)] = plain.Listener.Addr().String()
		o.server[netip.AddrPortFrom(a, 8080)] = plain.Listener.Addr().String()
		o.server[netip.AddrPortFrom(a, 443)] = secure.Listener.Addr().String()
	}
	o.names["inner.test"] = netip.MustParseAddr("10.1.2.3")
	o.names["meta.test"] = netip.MustParseAddr("169.254.169.254")
	o.server[netip.MustParseAddrPort("10.1.2.3:80")] = plain.Listener.Addr().String()
	o.server[netip.MustParseAddrPort("169.254.169.254:80")] = plain.Listener.Addr().String()
	o.server[netip.MustParseAddrPort("[2606:4700::1111]:80")] = plain.Listener.Addr().String()
	return o
}

func openOut(t *testing.T, change func(*local.Config)) cove.Provider {
	t.Helper()
	cfg := local.Config{Dir: providertest.Dir(t)}
	cfg.SetWorld(newOutside(t))
	cfg.Egress.Secrets = []local.Secret{
		{Name: "key", Hosts: []string{"good.test"}, Header: "X-Key", Value: "hunter2", Plain: true},
		{Name: "secure", Hosts: []string{"example.com"}, Header: "X-Key", Value: "hunter2"},
	}
	if change != nil {
		change(&cfg)
	}
	p, err := local.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	providertest.Ready(t, p)
	return p
}

// reach makes a sandbox with a network.
func reach(t *testing.T, p cove.Provider, n cove.Network) (cove.Sandbox, cove.Egress) {
	t.Helper()
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Network: n})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	})
	e, ok := cove.As[cove.Egress](s)
	if !ok {
		t.Fatal("it has no way out")
	}
	return s, e
}

// fetch is a script that gets a page and prints it, or why not.
func fetch(url string) string {
	return `python3 -c 'import urllib.request as u
try: print(u.urlopen("` + url + `", timeout=10).read().decode())
except Exception as e: print("no:", e)'`
}

func lines(t *testing.T, e cove.Egress) []cove.Connection {
	t.Helper()
	var list []cove.Connection
	for c, err := range e.Connections(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

func allowed(hosts ...string) cove.Network {
	return cove.Network{Mode: cove.NetworkAllow, Allow: hosts}
}

func TestEgressUser(t *testing.T) {
	tier.Full(t, "the same tests run as root")
	linuxtest.Again(t, "^TestEgress(Allow|Open|Set|Secrets|Spare)$")
}

func TestEgressAllow(t *testing.T) {
	p := openOut(t, nil)
	s, e := reach(t, p, allowed("good.test", "*.sub.test", "inner.test", "meta.test", "later.test:8080"))
	for url, want := range map[string]string{
		"http://good.test/":                      "hello good.test",
		"http://later.test:8080/":                "hello later.test:8080",
		"http://later.test/":                     "no:",
		"http://evil.test/":                      "no:",
		"http://sub.test/":                       "no:",
		"http://inner.test/":                     "no:",
		"http://meta.test/latest/meta-data/":     "no:",
		"http://good.test/?to=http://meta.test/": "no:",
		"http://good.test/?to=http://evil.test/": "no:",
		"http://93.184.216.34/":                  "no:",
		"http://169.254.169.254/latest/":         "no:",
		"http://198.18.99.99/":                   "no:",
		"http://127.0.0.1/":                      "no:",
		"http://[2606:4700::1111]/":              "no:",
		"http://[::1]/":                          "no:",
		"http://[::ffff:169.254.169.254]/":       "no:",
		"http://0x7f.1/":                         "no:",
		"http://good.test:22/":                   "no:",
	} {
		if got := run(t, s, fetch(url)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	// Nothing but TCP, and nothing of what is local belongs to programs.
	for script, want := range map[string]string{
		`python3 -c 'import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("93.184.216.34", 443)); s.send(b"x")'`:                          "unreachable",
		`python3 -c 'import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("198.18.5.5", 443)); s.send(b"x"); s.settimeout(5); s.recv(1)'`: "refused",
		`python3 -c 'import socket; s=socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.connect(("2606:4700::1111", 443)); s.send(b"x")'`:                       "unreachable",
		`python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'`:                                                                            "Error",
		`python3 -c 'import socket; socket.socket().bind(("198.18.0.1", 80))'`:                                                                                     "Error",
		`ls /sys/class/net /proc/sys/net/core/somaxconn; echo 1 > /proc/sys/net/ipv4/ip_forward`:                                                                   "",
		`python3 -m http.server 9999 > /dev/null & sleep 0.5; python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:9999").status)'; kill %1`:  "200",
	} {
		if got := run(t, s, script); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	list := lines(t, e)
	for _, want := range []cove.Connection{
		{Protocol: "tcp", Host: "good.test", Port: 80, Allowed: true},
		{Protocol: "dns", Host: "evil.test"},
		{Protocol: "tcp", Host: "inner.test", Port: 80},
		{Protocol: "tcp", Host: "meta.test", Port: 80},
		{Protocol: "tcp", Host: "198.18.99.99", Port: 80},
		{Protocol: "tcp", Host: "127.0.0.1", Port: 80},
	} {
		if !slices.ContainsFunc(list, func(c cove.Connection) bool {
			return c.Protocol == want.Protocol && c.Host == want.Host && c.Port == want.Port && c.Allowed == want.Allowed && (c.Why == "") == want.Allowed
		}) {
			t.Errorf("no line such as %+v", want)
		}
	}
}

func TestEgressOpen(t *testing.T) {
	p := openOut(t, nil)
	s, e := reach(t, p, cove.Network{Mode: cove.NetworkOpen})
	for url, want := range map[string]string{
		"http://good.test/":                "hello good.test",
		"http://93.184.216.34/":            "hello 93.184.216.34",
		"http://[2606:4700::1111]/":        "hello [2606:4700::1111]",
		"http://inner.test/":               "no:",
		"http://meta.test/":                "no:",
		"http://169.254.169.254/latest/":   "no:",
		"http://10.1.2.3/":                 "no:",
		"http://127.0.0.1/":                "no:",
		"http://[::1]/":                    "no:",
		"http://[::ffff:169.254.169.254]/": "no:",
		"http://[64:ff9b::a9fe:a9fe]/":     "no:",
		"http://100.64.0.1/":               "no:",
	} {
		if got := run(t, s, fetch(url)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	if err := e.SetNetwork(t.Context(), allowed("good.test")); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("another mode: %v", err)
	}
	if again, err := p.Attach(t.Context(), s.ID()); err != nil || again != s {
		t.Errorf("attach: %v, %v", again, err)
	}
}

func TestEgressSet(t *testing.T) {
	p := openOut(t, nil)
	s, e := reach(t, p, allowed("good.test"))
	if got := run(t, s, fetch("http://later.test:8080/")); !strings.HasPrefix(got, "no:") {
		t.Errorf("before: %q", got)
	}
	if err := e.SetNetwork(t.Context(), allowed("later.test:8080")); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, fetch("http://later.test:8080/")); !strings.HasPrefix(got, "hello") {
		t.Errorf("after: %q", got)
	}
	if got := run(t, s, fetch("http://good.test/")); !strings.HasPrefix(got, "no:") {
		t.Errorf("what was taken away: %q", got)
	}
	for name, c := range map[string]struct {
		n    cove.Network
		code cove.Code
	}{
		"mode":    {cove.Network{Mode: cove.NetworkOpen}, cove.Unsupported},
		"none":    {cove.Network{Mode: cove.NetworkNone}, cove.Unsupported},
		"empty":   {allowed(), cove.Invalid},
		"host":    {allowed("a b"), cove.Invalid},
		"address": {allowed("1.2.3.4"), cove.Invalid},
		"port 53": {allowed("dns.test:53"), cove.Unsupported},
		"secret":  {cove.Network{Mode: cove.NetworkAllow, Allow: []string{"good.test"}, Secrets: []string{"other"}}, cove.Invalid},
	} {
		if err := e.SetNetwork(t.Context(), c.n); cove.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A program that listens there keeps the port.
	busy, err := s.Start(t.Context(), cove.Command{Argv: []string{"python3", "-m", "http.server", "8765"}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, `python3 -c 'import socket, time
for _ in range(200):
    try: socket.create_connection(("127.0.0.1", 8765)); break
    except OSError: time.sleep(0.05)'`)
	if err := e.SetNetwork(t.Context(), allowed("good.test:8765")); cove.CodeOf(err) != cove.Conflict || !strings.Contains(cove.MessageOf(err), "8765") {
		t.Errorf("a port that is taken: %v", err)
	}
	if err := busy.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, fetch("http://later.test:8080/")); !strings.HasPrefix(got, "hello") {
		t.Errorf("after a change that was refused: %q", got)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.SetNetwork(t.Context(), allowed("good.test")); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("of a sandbox that is gone: %v", err)
	}
	for _, err := range e.Connections(t.Context(), 0) {
		if cove.CodeOf(err) != cove.NotFound {
			t.Errorf("connections of a sandbox that is gone: %v", err)
		}
	}
}

func TestEgressSecrets(t *testing.T) {
	p := openOut(t, nil)
	n := allowed("good.test", "example.com", "later.test")
	s, e := reach(t, p, n)
	if got := run(t, s, fetch("http://good.test/")); !strings.HasPrefix(got, "hello good.test key= ") {
		t.Errorf("a secret that was not named: %q", got)
	}
	if got := run(t, s, "env | grep -c CERT"); got != "0\n" {
		t.Errorf("told whom to trust: %q", got)
	}
	n.Secrets = []string{"key", "secure"}
	if err := e.SetNetwork(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"http://good.test/":    "hello good.test key=hunter2 ",
		"http://good.test:443": "no: HTTP Error 403",
		"http://example.com/":  "no: HTTP Error 403",
		"https://example.com/": "hello example.com key=hunter2 ", // the only name of the test's certificate
		"http://later.test/":   "hello later.test key= ",
		"https://later.test/":  "no:", // not read, and the server is not who it says
	} {
		if got := run(t, s, fetch(url)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	if got := run(t, s, "curl -sS https://example.com/ -d x=y"); !strings.Contains(got, "key=hunter2 body=x=y") {
		t.Errorf("curl: %q", got)
	}
	if got := run(t, s, "env; cat /proc/*/environ 2>/dev/null; cat /tmp/.cove/ca.pem"); strings.Contains(got, "hunter2") || !strings.Contains(got, "SSL_CERT_FILE=/tmp/.cove/ca.pem") || strings.Contains(got, "PRIVATE KEY") {
		t.Errorf("inside is: %.2000q", got)
	}
	for _, c := range lines(t, e) {
		if strings.Contains(fmt.Sprint(c), "hunter2") {
			t.Errorf("line: %+v", c)
		}
	}
	// Who says himself whom to trust is not told.
	mine, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Network: n, Env: map[string]string{"SSL_CERT_FILE": "/mine"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mine.Destroy(context.Background()) }()
	if got := run(t, mine, "echo $SSL_CERT_FILE $PIP_CERT"); got != "/mine /tmp/.cove/ca.pem\n" {
		t.Errorf("variables: %q", got)
	}
	for _, n := range []cove.Network{
		{Mode: cove.NetworkAllow, Allow: []string{"good.test"}, Secrets: []string{"nobody's"}},
		{Mode: cove.NetworkNone, Secrets: []string{"key"}},
		{Secrets: []string{"key"}},
	} {
		if s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Network: n}); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%+v: %v", n, err)
			if err == nil {
				_ = s.Destroy(t.Context())
			}
		}
	}
}

// A sandbox that was made before anybody asked for a network gets one, too.
func TestEgressSpare(t *testing.T) {
	p := openOut(t, nil)
	preparer, ok := cove.As[cove.Preparer](p)
	if !ok {
		t.Fatal("nothing is prepared")
	}
	spare, err := preparer.Prepare(t.Context(), cove.Mold{Template: local.Base, Workspace: cove.WorkspaceMemory})
	if err != nil {
		t.Fatal(err)
	}
	n := allowed("good.test")
	n.Secrets = []string{"key"}
	s, err := spare.Claim(t.Context(), cove.NewID(), cove.Spec{Template: local.Base, Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}, Network: n})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Destroy(context.Background()) }()
	if got := run(t, s, fetch("http://good.test/")); !strings.HasPrefix(got, "hello good.test key=hunter2") {
		t.Errorf("got %q", got)
	}
	none, err := p.Create(t.Context(), cove.NewID(), cove.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = none.Destroy(context.Background()) }()
	if _, ok := cove.As[cove.Egress](none); ok {
		t.Error("a sandbox without a network has a way out")
	}
	if got := run(t, none, fetch("http://good.test/")); !strings.HasPrefix(got, "no:") {
		t.Errorf("without a network: %q", got)
	}
}

// The host's own world: a server at its loopback that the operator opened.
func TestEgressPrivate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inner") }))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Listener = l
	server.Start()
	defer server.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for _, private := range [][]netip.Prefix{nil, {netip.MustParsePrefix("127.0.0.1/32")}} {
		p := openOut(t, func(c *local.Config) {
			c.SetWorld(&loopback{})
			c.Egress.Private = private
		})
		s, _ := reach(t, p, allowed(fmt.Sprintf("inner.test:%d", port)))
		want := "no:"
		if private != nil {
			want = "inner"
		}
		if got := run(t, s, fetch(fmt.Sprintf("http://inner.test:%d/", port))); !strings.HasPrefix(got, want) {
			t.Errorf("with %v: %q", private, got)
		}
	}
}

// loopback is the host's world with one name in it.
type loopback struct{ egress.Host }

func (*loopback) Lookup(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

func TestEgressLeavesNothing(t *testing.T) {
	p := openOut(t, nil)
	reachOnce := func() {
		s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Network: cove.Network{Mode: cove.NetworkOpen, Secrets: []string{"key"}}})
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, fetch("http://good.test/"))
		if err := s.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	reachOnce()
	linuxtest.NoLeaks(t, "")
	for range 3 {
		reachOnce()
	}
}

func TestEgressConfig(t *testing.T) {
	good := local.Secret{Name: "a", Hosts: []string{"a.test"}, Header: "X-A", Value: "v"}
	for name, e := range map[string]local.Egress{
		"twice":  {Secrets: []local.Secret{good, good}},
		"secret": {Secrets: []local.Secret{{Name: "a"}}},
		"limit":  {Limits: local.Limits{Connections: -1}},
	} {
		if _, err := local.New(local.Config{Dir: t.TempDir(), Egress: e}); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
