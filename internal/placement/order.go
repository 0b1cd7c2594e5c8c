// Package placement says which nodes of a cluster are to be asked for a new
// sandbox, and in which order. It goes by what nodes said of themselves, which is
// some seconds old: a node that is asked may refuse, and then the next one is.
//
// Of the nodes that have room, the first to be asked is the better of two that
// chance named. The best of all would be asked by every other node at the same
// time, since all of them read the same announcements.
//
// It is a function of its arguments: it must not ask anybody, look at a clock or
// throw dice of its own.
package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/cove-sandbox/cove"
)

// Want is what a session needs of a node. The zero Want fits every node that has
// a provider for those who name none.
type Want struct {
	Provider string // "" is the node's default
	// Fallback is who serves those that name no provider, in this order, on nodes
	// whose default is not ready. Empty is nobody.
	Fallback  []string
	Isolation cove.Boundary // at least this; "" is any
	Template  string        // "" and "base" are everywhere
	Memory    cove.Bytes
	Pin       string // only this node will do: the files are there
}

// Most is how many nodes of a kind are asked at most: of those with room, and of
// those without.
const Most = 8

// Order returns the nodes to be asked for a sandbox, in this order: the better of
// two that have room, the others that have room, best first, and those that are
// full, which may queue or evict, best first. Nodes on which another provider
// would serve instead of the default come after all others.
//
// pick returns a number from 0 to n-1. It is called at most twice; with the same
// nodes and the same numbers the order is the same.
//
// Where no node will do, the error is Unavailable if one may do later, Exhausted
// if all are too small, and Unsupported otherwise; it says what is missing and
// who has what.
func Order(nodes []cove.Node, w Want, pick func(n int) int) ([]cove.Node, error) {
	first, instead, err := fitting(nodes, w)
	if err != nil {
		return nil, err
	}
	if first.empty() {
		first, instead = instead, tier{}
	}
	order := make([]cove.Node, 0, 2*Most)
	if lead := betterOfTwo(first.room, pick); lead >= 0 {
		order = append(order, *first.room[lead])
		first.room = slices.Delete(first.room, lead, lead+1)
	}
	order = appendBest(order, first.room, Most-len(order))
	for _, rest := range [][]*cove.Node{first.full, instead.room, instead.full} {
		order = appendBest(order, rest, Most)
	}
	return order, nil
}

// tier is nodes that are alike in all but their room.
type tier struct{ room, full []*cove.Node }

func (t *tier) add(n *cove.Node, w Want) {
	if hasRoom(n, w) {
		t.room = append(t.room, n)
	} else {
		t.full = append(t.full, n)
	}
}

func (t *tier) empty() bool { return len(t.room)+len(t.full) == 0 }

// betterOfTwo returns the index of the better of two nodes that chance names, or
// -1 where there is none.
func betterOfTwo(nodes []*cove.Node, pick func(int) int) int {
	n := len(nodes)
	if n < 2 {
		return n - 1
	}
	a, b := within(pick(n), n), within(pick(n-1), n-1)
	if b >= a {
		b++ // one of the others
	}
	if compare(nodes[b], nodes[a]) < 0 {
		return b
	}
	return a
}

// within keeps a number that somebody else chose inside its bounds.
func within(i, n int) int { return min(max(i, 0), n-1) }

// appendBest appends the best of nodes, at most this many. There may be thousands
// of nodes, of which few are ever asked: they are not all sorted.
func appendBest(order []cove.Node, nodes []*cove.Node, most int) []cove.Node {
	best := make([]*cove.Node, 0, Most+1)
	for _, n := range nodes {
		if len(best) == most && compare(n, best[most-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, n, compare)
		best = slices.Insert(best, at, n)
		best = best[:min(len(best), most)]
	}
	for _, n := range best {
		order = append(order, *n)
	}
	return order
}

// compare is negative where a is the better one: it has more free memory, then
// more free sessions, then more spares. Those without bounds differ by what they
// have already. Names tell apart what is alike.
func compare(a, b *cove.Node) int {
	if c := cmp.Compare(freeMemory(b), freeMemory(a)); c != 0 {
		return c
	}
	if c := cmp.Compare(freeSessions(b), freeSessions(a)); c != 0 {
		return c
	}
	if c := cmp.Compare(b.Pool, a.Pool); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Used.Memory, b.Used.Memory); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Used.Sessions, b.Used.Sessions); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// hasRoom reports whether a node could take the session at once.
func hasRoom(n *cove.Node, w Want) bool {
	return freeSessions(n) > 0 && freeMemory(n) >= w.Memory
}

// holds reports whether a node could take the session if it were empty.
func holds(n *cove.Node, w Want) bool {
	return n.Capacity.Memory <= 0 || n.Capacity.Memory >= w.Memory
}

// freeMemory is 0 for a node that is over its bound, whatever it says.
func freeMemory(n *cove.Node) cove.Bytes {
	if n.Capacity.Memory <= 0 {
		return math.MaxInt64
	}
	return n.Capacity.Memory - min(max(n.Used.Memory, 0), n.Capacity.Memory)
}

func freeSessions(n *cove.Node) int {
	if n.Capacity.Sessions <= 0 {
		return math.MaxInt
	}
	return n.Capacity.Sessions - min(max(n.Used.Sessions, 0), n.Capacity.Sessions)
}
