package egress

import (
	"cmp"
	"slices"
	"sync"

	"github.com/cove-sandbox/cove"
)

// kept is how many connections of each kind are remembered.
const kept = 2048

// journal holds the newest connections: those that were allowed, and apart from
// them those that were not, so that nobody can make it forget one kind by a flood
// of the other. Methods are safe for concurrent use.
type journal struct {
	tell func(cove.Connection) // may be nil

	mu              sync.Mutex
	last            int64 // guarded by mu
	allowed, denied ring  // guarded by mu
}

// ring holds the newest of its kind.
type ring struct {
	list  []cove.Connection
	count int // of all there ever were
}

func (r *ring) add(c cove.Connection) {
	if len(r.list) < kept {
		r.list = append(r.list, c)
	} else {
		r.list[r.count%kept] = c
	}
	r.count++
}

// add gives a connection its number.
func (j *journal) add(c cove.Connection) {
	j.mu.Lock()
	j.last++
	c.Number = j.last
	if c.Allowed {
		j.allowed.add(c)
	} else {
		j.denied.add(c)
	}
	j.mu.Unlock()
	if j.tell != nil {
		j.tell(c)
	}
}

// after returns what is kept with higher numbers, oldest first.
func (j *journal) after(number int64) []cove.Connection {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []cove.Connection
	for _, list := range [][]cove.Connection{j.allowed.list, j.denied.list} {
		for _, c := range list {
			if c.Number > number {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b cove.Connection) int { return cmp.Compare(a.Number, b.Number) })
	return out
}
