package e2bapi

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Bounds on signatures that are tried.
const (
	trialsPerSecond = 20   // wrong ones, of one remote address
	maxRemotes      = 4096 // beyond them all others share one count
)

// trials counts the signatures that were wrong, by who showed them. The zero value is
// ready.
type trials struct {
	mu       sync.Mutex
	byRemote map[netip.Prefix]*trial
}

// trial is what one remote address tried in a second.
type trial struct {
	second int64
	count  int
}

// begin books a trial before anybody looks at it, and reports whether there may be one.
// One that turns out to be good is taken back.
func (t *trials) begin(remote string) (back func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of(neighbourhood(remote), time.Now().Unix())
	if one.count >= trialsPerSecond {
		return nil, false
	}
	one.count++
	second := one.second
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.second == second {
			one.count--
		}
	}, true
}

// of returns the count of this second. The caller holds mu.
func (t *trials) of(who netip.Prefix, second int64) *trial {
	if t.byRemote == nil {
		t.byRemote = map[netip.Prefix]*trial{}
	}
	one := t.byRemote[who]
	if one == nil && len(t.byRemote) >= maxRemotes {
		for other, old := range t.byRemote {
			if old.second != second {
				delete(t.byRemote, other)
			}
		}
		if len(t.byRemote) >= maxRemotes {
			who = netip.Prefix{}
			one = t.byRemote[who]
		}
	}
	if one == nil {
		one = &trial{}
		t.byRemote[who] = one
	}
	if one.second != second {
		one.second, one.count = second, 0
	}
	return one
}

// neighbourhood is what of a remote address counts as one: who has an address of IPv6
// has many.
func neighbourhood(remote string) netip.Prefix {
	const network, host = 64, 32
	name, _, err := net.SplitHostPort(remote)
	if err != nil {
		name = remote
	}
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return netip.Prefix{}
	}
	bits := host
	if addr = addr.Unmap(); addr.Is6() {
		bits = network
	}
	p, err := addr.WithZone("").Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
