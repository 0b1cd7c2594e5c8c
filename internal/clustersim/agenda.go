package clustersim

import "time"

// kind is what happens at an entry of the agenda.
type kind uint8

const (
	closes    kind = iota // a session ends by itself
	givesUp               // somebody has waited long enough
	crashes               // a node is gone, with all that it had
	returns               // it is back, empty
	drains                // a node gives away what can move
	undrained             // it takes sessions again
	outage                // the directory cannot be reached
	outageEnds
)

// entry is one thing that will happen. Whose a session's slot is meanwhile is told
// by its turn.
type entry struct {
	at   time.Duration
	seq  uint64 // of what is at the same time, the first that was entered is first
	kind kind
	who  int // a slot or a node
	turn uint32
}

// agenda is what will happen, soonest first: a heap.
type agenda struct {
	list []entry
	seq  uint64
}

func (a *agenda) add(e entry) {
	a.seq++
	e.seq = a.seq
	a.list = append(a.list, e)
	for i := len(a.list) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.list[i].before(a.list[up]) {
			return
		}
		a.list[i], a.list[up] = a.list[up], a.list[i]
		i = up
	}
}

// due reports whether something happens until then.
func (a *agenda) due(until time.Duration) bool { return len(a.list) > 0 && a.list[0].at <= until }

// pop takes the soonest entry. There must be one.
func (a *agenda) pop() entry {
	first, last := a.list[0], len(a.list)-1
	a.list[0] = a.list[last]
	a.list = a.list[:last]
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < last && a.list[down].before(a.list[least]) {
				least = down
			}
		}
		if least == i {
			return first
		}
		a.list[i], a.list[least] = a.list[least], a.list[i]
		i = least
	}
}

func (e entry) before(o entry) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }
