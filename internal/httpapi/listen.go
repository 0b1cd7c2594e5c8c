package httpapi

import (
	"net"
	"net/netip"
	"sync"
)

// Bounds are how many connections a listener holds open at once.
type Bounds struct {
	All       int // of everybody; 0: no bound
	PerRemote int // of one address, or of one /64 of IPv6; 0: no bound
	// Refused is called with the remote address of each connection that was
	// closed at once because it would have been one too many. nil: nobody.
	Refused func(remote net.Addr)
}

// Limit returns a listener that closes what comes beyond the bounds at once.
// Those that are open keep their place until they are closed: one remote cannot
// take the places of all others.
func Limit(l net.Listener, b Bounds) net.Listener {
	return &bounded{Listener: l, Bounds: b, remotes: map[netip.Prefix]int{}}
}

type bounded struct {
	net.Listener
	Bounds

	mu      sync.Mutex
	open    int                  // guarded by mu
	remotes map[netip.Prefix]int // guarded by mu
}

// Accept implements [net.Listener].
func (l *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := remote(conn.RemoteAddr())
		if !l.enter(from) {
			_ = conn.Close() // it was never ours
			if l.Refused != nil {
				l.Refused(conn.RemoteAddr())
			}
			continue
		}
		leave := sync.OnceFunc(func() { l.leave(from) })
		if tcp, ok := conn.(*net.TCPConn); ok {
			return &placedTCP{TCPConn: tcp, leave: leave}, nil
		}
		return &placed{Conn: conn, leave: leave}, nil
	}
}

// remote is who is at the other end, as far as an address tells: whoever has one
// of IPv6 has all that differ in its second half.
func remote(addr net.Addr) netip.Prefix {
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip := ap.Addr().Unmap()
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.WithZone("").Prefix(bits) // the lengths fit
	return p
}

func (l *bounded) enter(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.All > 0 && l.open >= l.All || l.PerRemote > 0 && l.remotes[from] >= l.PerRemote {
		return false
	}
	l.open++
	l.remotes[from]++
	return true
}

func (l *bounded) leave(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.remotes[from]--; l.remotes[from] == 0 {
		delete(l.remotes, from)
	}
}

// placed is a connection that has a place.
type placed struct {
	net.Conn

	leave func()
}

// Close implements [net.Conn].
func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}

// placedTCP is placed with all that a TCP connection can do.
type placedTCP struct {
	*net.TCPConn

	leave func()
}

// Close implements [net.Conn].
func (p *placedTCP) Close() error {
	defer p.leave()
	return p.TCPConn.Close()
}
