package egress

import (
	"container/list"
	"encoding/binary"
	"net/netip"
	"sync"
	"time"
)

// Range is where the addresses of names are: set aside for tests of network
// devices, so that nobody is there.
var Range = netip.MustParsePrefix("198.18.0.0/15")

// keepName is how long a name that nobody asks for keeps its address for sure.
const keepName = 10 * time.Minute

// names gives names addresses. A name keeps its address while it is used; when
// there are too many, the one that was not used for longest gives way, and while
// all are in use there is none for another. Methods are safe for concurrent use.
type names struct {
	from netip.Prefix
	size uint32 // how many addresses there are to give

	mu     sync.Mutex
	byName map[string]*list.Element // guarded by mu, of *entry
	byAddr map[netip.Addr]*list.Element
	order  *list.List // the last used first
	next   uint32
}

type entry struct {
	name string
	addr netip.Addr
	used time.Time
}

// reservedAddresses at the beginning of the range belong to the caller, who puts
// the name server there.
const reservedAddresses = 256

func newNames(from netip.Prefix) *names {
	return &names{
		from: from, size: 1<<(32-from.Bits()) - reservedAddresses,
		byName: map[string]*list.Element{}, byAddr: map[netip.Addr]*list.Element{}, order: list.New(),
	}
}

// address returns the address of a name, or false when most are in use.
func (n *names) address(name string, most int) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if e := n.byName[name]; e != nil {
		n.touch(e, now)
		return value(e).addr, true
	}
	for n.order.Len() >= most {
		oldest := n.order.Back()
		if now.Sub(value(oldest).used) < keepName {
			return netip.Addr{}, false
		}
		n.order.Remove(oldest)
		delete(n.byName, value(oldest).name)
		delete(n.byAddr, value(oldest).addr)
	}
	a := n.free()
	e := n.order.PushFront(&entry{name: name, addr: a, used: now})
	n.byName[name], n.byAddr[a] = e, e
	return a, true
}

// free returns the next address that stands for nothing. There is one: the table
// is smaller than the range. Addresses come back late, so that what somebody
// remembers of them stands for no other name soon. Callers hold mu.
func (n *names) free() netip.Addr {
	base := n.from.Masked().Addr().As4()
	first := binary.BigEndian.Uint32(base[:])
	for {
		var at [4]byte
		binary.BigEndian.PutUint32(at[:], first+reservedAddresses+n.next%n.size)
		n.next++
		a := netip.AddrFrom4(at)
		if n.byAddr[a] == nil {
			return a
		}
	}
}

// name returns what an address stands for.
func (n *names) name(a netip.Addr) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.byAddr[a]
	if e == nil {
		return "", false
	}
	n.touch(e, time.Now())
	return value(e).name, true
}

func (n *names) touch(e *list.Element, now time.Time) {
	value(e).used = now
	n.order.MoveToFront(e)
}

func value(e *list.Element) *entry {
	v, _ := e.Value.(*entry)
	return v
}
