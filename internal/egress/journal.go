package egress

import (
	"sync"

	"github.com/cove-sandbox/cove"
)

// kept is how many connections are remembered.
const kept = 4096

// journal holds the newest connections. Methods are safe for concurrent use.
type journal struct {
	tell func(cove.Connection) // may be nil

	mu   sync.Mutex
	ring []cove.Connection // guarded by mu; the one numbered n is at (n-1) % kept
	last int64
}

// add gives a connection its number. A sandbox decides how long names are, to a
// bound; the rest is ours.
func (j *journal) add(c cove.Connection) {
	j.mu.Lock()
	j.last++
	c.Number = j.last
	if len(j.ring) < kept {
		j.ring = append(j.ring, c)
	} else {
		j.ring[(c.Number-1)%kept] = c
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
	first := max(number, j.last-int64(len(j.ring)), 0)
	var out []cove.Connection
	for n := first + 1; n <= j.last; n++ {
		out = append(out, j.ring[(n-1)%kept])
	}
	return out
}
