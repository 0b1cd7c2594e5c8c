package egress

import (
	"net/netip"
	"time"
)

// Reachable is asked of addresses.
var Reachable = reachable

// CleanName is asked of names.
var CleanName = cleanName

// Allows parses a list and asks it.
func Allows(list []string, name string, port uint16) (bool, error) {
	r, err := parseRules("hosts", list)
	return r.allows(name, port), err
}

// Bucket is one that is counted in tests.
type Bucket struct{ b bucket }

// Take is the bucket's own.
func (b *Bucket) Take(rate int) (bool, bool) { return b.b.take(rate) }

// Spend is the bucket's own.
func (b *Bucket) Spend(n, rate int64) time.Duration { return b.b.spend(n, rate) }

// Names is a table that is filled in tests.
type Names struct{ n *names }

// NewNames returns an empty table.
func NewNames(from netip.Prefix) Names { return Names{newNames(from)} }

// Address is the table's own.
func (n Names) Address(name string, most int) (netip.Addr, bool) { return n.n.address(name, most) }

// Name is the table's own.
func (n Names) Name(a netip.Addr) (string, bool) { return n.n.name(a) }

// ParseQuery reads a question.
func ParseQuery(b []byte) (string, error) {
	_, q, err := parseQuery(b)
	return q.Name.String(), err
}

// HostTrust is how whom the host trusts is found.
var HostTrust = hostTrust
