package clustersim

import (
	"cmp"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// books follow a trace from event to event.
type books struct {
	*run

	nodes   map[string]int
	open    map[account][]int     // arrivals that are there, first come first
	down    map[int]time.Duration // nodes that lost sessions and opened none since, and when
	cut     []int                 // arrivals of which nobody knows how long they would have been; what is known is their length
	began   map[int]time.Duration // arrivals that waited, and when they got in
	waits   []time.Duration
	lengths []float64
}

// account is sessions that nothing tells apart.
type account struct {
	node   int
	memory cove.Bytes
}

func (b *books) enter(e Event) error {
	if e.Event == EventNode {
		return nil
	}
	at, ok := b.nodes[e.Node]
	if !ok && e.Event != EventRefused {
		return cove.Errorf(cove.Invalid, "the trace has no line for node %.60q", e.Node).Remedy("%s", nodeLines)
	}
	mine := account{at, e.Memory}
	switch e.Event {
	case EventOpen:
		b.open[mine] = append(b.open[mine], len(b.arrivals))
		b.arrivals = append(b.arrivals, arrival{at: e.at() - e.waited(), memory: e.Memory})
		b.outcome.opened++
		if e.Waited > 0 {
			b.outcome.waited++
			b.began[len(b.arrivals)-1] = e.at()
			b.waits = append(b.waits, e.waited())
		}
		b.isBack(at, e.at())
	case EventRefused:
		b.cut = append(b.cut, len(b.arrivals))
		b.arrivals = append(b.arrivals, arrival{at: e.at() - e.waited(), memory: e.Memory})
		b.outcome.refused++
	case EventClose, EventLost:
		if len(b.open[mine]) == 0 {
			return cove.Errorf(cove.Invalid, "the trace has a %s at %d ms of a session of %s that %.60q does not have", e.Event, e.At, e.Memory, e.Node)
		}
		b.end(mine, e.at(), e.Event == EventLost)
	}
	return nil
}

// end is that of the first session of an account. One that is lost would have gone
// on: the first loss says that its node crashed.
func (b *books) end(mine account, at time.Duration, lost bool) {
	first := b.open[mine][0]
	a := &b.arrivals[first]
	b.open[mine] = b.open[mine][1:]
	if !lost {
		a.length = at - max(a.at, b.began[first])
		b.lengths = append(b.lengths, float64(a.length))
		return
	}
	b.outcome.lost++
	a.length = at - max(a.at, b.began[first])
	b.cut = append(b.cut, first)
	if _, known := b.down[mine.node]; !known {
		b.down[mine.node] = at
		b.crashes = append(b.crashes, entry{at: at, kind: crashes, who: mine.node})
	}
}

// isBack notes that a node which crashed opens sessions again.
func (b *books) isBack(i int, at time.Duration) {
	if _, was := b.down[i]; was {
		delete(b.down, i)
		// It is known to the others before they ask it.
		b.crashes = append(b.crashes, entry{at: max(0, at-beatEvery), kind: returns, who: i})
	}
}

// finish fills in what no event says. Sessions that are there at the end last.
// Those that were refused would have been as long as others in the mean, and those
// that were lost would have gone on for as long.
func (b *books) finish(t Trace) {
	for _, mine := range b.open {
		for _, i := range mine {
			b.arrivals[i].length = maxLength
		}
	}
	usual := cmp.Or(time.Duration(mean(b.lengths)), maxLength)
	for _, i := range b.cut {
		b.arrivals[i].length += usual
	}
	slices.SortStableFunc(b.arrivals, func(x, y arrival) int { return cmp.Compare(x.at, y.at) })
	b.outcome.wait = quantile(b.waits, 0.5)
	b.outcome.balance, b.outcome.spread = b.balance(t)
}

// balance looks at the nodes of a run as often as the model does, in the same way.
func (b *books) balance(t Trace) (deviation, fullest float64) {
	cfg := Config{Length: b.length}
	m := newModel(cfg, slices.Clone(b.run.nodes))
	downs := slices.Clone(b.crashes)
	slices.SortStableFunc(downs, func(x, y entry) int { return cmp.Compare(x.at, y.at) })
	for m.now < b.length {
		next := m.nextTick()
		for len(downs) > 0 && downs[0].at <= next {
			m.nodes[downs[0].who].up = downs[0].kind == returns
			downs = downs[1:]
		}
		for len(t) > 0 && t[0].at() <= next {
			m.apply(b.nodes, t[0])
			t = t[1:]
		}
		m.now = next
		m.ticks++
		if every(m.now, sampled) || b.length < time.Hour {
			m.stats.sample(m)
		}
	}
	return mean(m.stats.Balance), mean(m.stats.Spread)
}

func (m *model) apply(nodes map[string]int, e Event) {
	n := &m.nodes[nodes[e.Node]]
	switch e.Event {
	case EventOpen:
		n.memory += e.Memory
	case EventClose, EventLost:
		n.memory -= e.Memory
	}
}
