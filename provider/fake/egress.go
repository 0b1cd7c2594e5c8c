package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

const (
	maxConnections = 1024 // how many lines the log keeps
	// outside is where every server of the pretended world is; it belongs to
	// nobody (RFC 5737).
	outside = "203.0.113.1"
)

// gateway is the pretended way out of one sandbox.
type gateway struct {
	world map[string]string

	mu    sync.Mutex
	rules cove.Network      // guarded by mu
	log   []cove.Connection // guarded by mu
	last  int64             // guarded by mu
}

func newGateway(n cove.Network, world map[string]string) *gateway {
	return &gateway{world: world, rules: n}
}

// knows refuses what a sandbox cannot have of a network: this provider keeps no
// secrets.
func (p *Provider) knows(n cove.Network) error {
	if len(n.Secrets) > 0 {
		return cove.InvalidField("network.secrets", "%q is unknown; provider %s has no secrets", n.Secrets[0], p.cfg.Name)
	}
	return nil
}

type leading struct {
	cove.Sandbox

	s *sandbox
}

var _ cove.Egress = leading{}

func (l leading) Unwrap() cove.Sandbox { return l.Sandbox }

// SetNetwork implements [cove.Egress]. Pretended connections are over at once,
// so that there is none to end.
func (l leading) SetNetwork(ctx context.Context, n cove.Network) error {
	if err := l.s.ready(ctx, "network"); err != nil {
		return err
	}
	if n.Mode == "" {
		return cove.InvalidField("network.mode", "is missing; use none, allow or open")
	}
	if err := n.Validate(); err != nil {
		return err
	}
	if err := l.s.provider.knows(n); err != nil {
		return err
	}
	g := l.s.machine.way()
	g.mu.Lock()
	defer g.mu.Unlock()
	spec := l.s.spec.Clone()
	spec.Network = n
	if err := l.s.remark(spec); err != nil {
		return cove.Wrap(cove.Unavailable, err, "the network of the sandbox cannot be written down")
	}
	g.rules = spec.Clone().Network
	return nil
}

// remark writes another spec down, whole or not at all.
func (s *sandbox) remark(spec cove.Spec) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	name := string(s.id) + "/" + marker
	if err := s.provider.root.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return s.provider.root.Rename(name+".new", name)
}

// Connections implements [cove.Egress].
func (l leading) Connections(ctx context.Context, after int64) iter.Seq2[cove.Connection, error] {
	return func(yield func(cove.Connection, error) bool) {
		if err := l.s.ready(ctx, "connections"); err != nil {
			yield(cove.Connection{}, err)
			return
		}
		g := l.s.machine.way()
		g.mu.Lock()
		list := slices.Clone(g.log)
		g.mu.Unlock()
		for _, c := range list {
			if c.Number > after && !yield(c, nil) {
				return
			}
		}
	}
}

// fetch pretends one request, and logs it. The error is for the program.
func (g *gateway) fetch(host string, port int, request string) (body string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last++
	c := cove.Connection{Number: g.last, At: time.Now(), Protocol: "tcp", Host: host, Port: port}
	defer func() {
		g.log = append(g.log, c)
		if len(g.log) > maxConnections {
			g.log = slices.Delete(g.log, 0, len(g.log)-maxConnections)
		}
	}()
	if c.Why = g.refuses(host, port); c.Why != "" {
		return "", fmt.Errorf("%s is not allowed: %s", host, c.Why)
	}
	c.Allowed, c.Address = true, net.JoinHostPort(outside, strconv.Itoa(port))
	body, ok := g.world[net.JoinHostPort(host, strconv.Itoa(port))]
	if !ok && (port == 80 || port == 443) {
		body, ok = g.world[host]
	}
	if !ok {
		c.Why = "nobody answers"
		return "", fmt.Errorf("%s port %d does not answer", host, port)
	}
	c.Sent, c.Received = cove.Bytes(len(request)), cove.Bytes(len(body))
	c.Took = time.Since(c.At)
	return body, nil
}

// refuses says why a place may not be reached, or "". Called with mu held.
func (g *gateway) refuses(host string, port int) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		if !addr.IsGlobalUnicast() || addr.IsPrivate() {
			return "the address is private"
		}
		if g.rules.Mode != cove.NetworkOpen {
			return "addresses are not on the list"
		}
	}
	switch {
	case g.rules.Mode == cove.NetworkOpen:
		return ""
	case g.rules.Mode == cove.NetworkAllow && slices.ContainsFunc(g.rules.Allow, func(rule string) bool { return allows(rule, host, port) }):
		return ""
	}
	return "it is not on the list"
}

// allows reports whether a rule names a place. One without a port means those
// of the web.
func allows(rule, host string, port int) bool {
	name, text, ok := strings.Cut(rule, ":")
	if ok && text != strconv.Itoa(port) || !ok && port != 80 && port != 443 {
		return false
	}
	if suffix, ok := strings.CutPrefix(name, "*"); ok {
		return strings.HasSuffix(host, suffix)
	}
	return name == host
}

// The exit codes of curl.
const (
	curlUsage     = 2
	curlBadURL    = 3
	curlNoHost    = 6
	curlNoConnect = 7
)

// runCurl is curl [-fsS] [-m seconds] URL: it prints what a server of the
// pretended world answers.
func runCurl(c *call) int {
	_, rest, err := c.options("fsSm:")
	if err != nil || len(rest) != 1 {
		_ = c.complain("usage: curl [-fsS] [-m seconds] url")
		return curlUsage
	}
	at, err := url.Parse(rest[0])
	if err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https" {
		_ = c.complain("(3) URL rejected: %.80q", rest[0])
		return curlBadURL
	}
	out := c.p.m.way()
	if out == nil {
		_ = c.complain("(6) Could not resolve host: %.255s", at.Hostname())
		return curlNoHost
	}
	port := 80
	if at.Scheme == "https" {
		port = 443
	}
	if at.Port() != "" {
		if port, err = strconv.Atoi(at.Port()); err != nil || port < 1 || port > 65535 {
			_ = c.complain("(3) URL rejected: bad port")
			return curlBadURL
		}
	}
	if err := c.p.step(); err != nil {
		return 1
	}
	host := strings.ToLower(at.Hostname())
	if len(host) > maxName {
		_ = c.complain("(6) Could not resolve host: the name is too long")
		return curlNoHost
	}
	body, err := out.fetch(host, port, "GET "+at.RequestURI()+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
	if err != nil {
		_ = c.complain("(7) %s", err)
		return curlNoConnect
	}
	if _, err := c.out.Write([]byte(body)); err != nil {
		return 1
	}
	return 0
}
