package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"
)

// World is what is outside: the host's resolver and network, or a test's. Methods
// are safe for concurrent use.
type World interface {
	// Lookup returns the addresses of a name that is complete.
	Lookup(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address. Whatever it connects to in the end it passes
	// to check, and gives up when that says no.
	Dial(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error)
	// Own returns the addresses of this machine.
	Own() []netip.Addr
	// Roots returns who is trusted to vouch for servers; nil is the host's list.
	Roots() *x509.CertPool
}

// Host is the World of this machine. The zero value is ready.
type Host struct {
	mu  sync.Mutex
	own []netip.Addr // guarded by mu
	at  time.Time
}

// table is the host's own table of names, such as /etc/hosts: nobody is asked.
var table = net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("nobody is asked")
}}

// Lookup implements [World]. The name is taken as it is: the host's search list
// is not for others.
func (*Host) Lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if !strings.Contains(name, ".") { // with a dot at its end the table would not know it
		if found, err := table.LookupNetIP(ctx, "ip", name); err == nil {
			return found, nil
		}
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
}

// Dial implements [World].
func (*Host) Dial(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error) (net.Conn, error) {
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("address: %w", err)
		}
		return check(a)
	}}
	return d.DialContext(ctx, "tcp", to.String())
}

// Own implements [World]. What it says is at most some seconds old.
func (h *Host) Own() []netip.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); h.at.IsZero() || now.Sub(h.at) > 5*time.Second {
		h.at, h.own = now, nil
		list, _ := net.InterfaceAddrs() // without it, the public ranges still say what is private
		for _, a := range list {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				h.own = append(h.own, p.Addr().Unmap())
			}
		}
	}
	return h.own
}

// Roots implements [World].
func (*Host) Roots() *x509.CertPool { return nil }

// mostAddresses of a name are tried.
const mostAddresses = 4

// refusal is why something was not done, in words that say nothing about the
// host's network.
type refusal string

func (r refusal) Error() string { return string(r) }

// dial resolves a name, or takes an address as it is, and connects to it. Every
// answer must be reachable: a name that leads to one good and one bad address is
// somebody's trick.
func (g *Gateway) dial(ctx context.Context, p *policy, t target) (net.Conn, netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.Dial)
	defer cancel()
	addrs := []netip.Addr{t.addr}
	if t.name != "" {
		found, err := g.world.Lookup(ctx, t.name)
		if err != nil || len(found) == 0 {
			return nil, netip.AddrPort{}, failure{"the name cannot be resolved" + because(err)}
		}
		addrs = found
	}
	own := g.world.Own()
	for i, a := range addrs {
		addrs[i] = a.Unmap()
		if !reachable(a, p.private, own) {
			if t.name == "" {
				return nil, netip.AddrPort{}, refusal("the address is not public")
			}
			return nil, netip.AddrPort{}, refusal("the name leads to " + a.String() + ", which is not public")
		}
	}
	check := func(a netip.AddrPort) error {
		if a.Port() != t.port || !reachable(a.Addr(), p.private, own) {
			return refusal("the address is not the one that was checked")
		}
		return nil
	}
	var last error
	for i, a := range addrs[:min(len(addrs), mostAddresses)] {
		to := netip.AddrPortFrom(a, t.port)
		conn, err := g.dialOne(ctx, to, check, min(len(addrs), mostAddresses)-i)
		if err == nil {
			return conn, to, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	if r, ok := errors.AsType[refusal](last); ok {
		return nil, netip.AddrPort{}, r
	}
	return nil, netip.AddrPort{}, failure{"the server cannot be reached" + because(last)}
}

// dialOne leaves time for those that are to be tried after it.
func (g *Gateway) dialOne(ctx context.Context, to netip.AddrPort, check func(netip.AddrPort) error, left int) (net.Conn, error) {
	if until, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(until)/time.Duration(left))
		defer cancel()
	}
	return g.world.Dial(ctx, to, check)
}

// failure is why something that is allowed did not work.
type failure struct{ why string }

func (f failure) Error() string { return f.why }

// because puts an error of the network into few words.
func because(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &dns) && dns.IsNotFound:
		return ": there is no such name"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return ": it takes too long"
	case errors.Is(err, context.Canceled):
		return ": it was given up"
	case errors.Is(err, syscall.ECONNREFUSED):
		return ": connection refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return ": there is no route to it"
	}
	return ""
}
