package clustersim

import (
	"math"
	"slices"
	"time"
)

// Stats is what came of a day. Of those who arrived each was refused, closed,
// lost, or is there at its end.
type Stats struct {
	Arrived, Opened, Closed, Lost, Moved, Stayed int

	Living, Waiting int // at the end
	Refused         Refusals
	Queued          int // had to wait at first
	Waited          int // and got in
	NeedlessWaits   int // of those who had to wait, while there was room somewhere
	Asks            int // of nodes, until one took a session or none did; to wait is one more
	Herd            int // the most that began on one node between two of its announcements
	Crashes, Drains int
	Peak            int // sandboxes at once

	Balance, Spread []float64 // at each look: deviation of memory over nodes ÷ mean, and most ÷ mean
	Waits           []time.Duration
	Requests        float64 // that were made of sessions, by expectation

	cfg    Config
	live   int
	burden burden
}

// Refusals is why sessions were not opened.
type Refusals struct {
	Full      int // no node had room, and waiting was not allowed, or did not help
	Directory int // it could not be reached
	Crash     int // of the node at which they waited
}

// All is those that were refused for any reason.
func (r Refusals) All() int { return r.Full + r.Directory + r.Crash }

func (s *Stats) init(cfg Config) { s.cfg = cfg }

func (s *Stats) ops(now time.Duration, o op, n float64) { s.burden.add(now, o, n) }

func (s *Stats) opened(m *model, one *session) {
	s.Opened++
	s.live++
	s.Peak = max(s.Peak, s.live)
	if wait := m.now - one.since; wait > 0 {
		s.Waited++
		s.Waits = append(s.Waits, wait)
	}
	requests := one.length.Seconds() / s.cfg.Pace.Seconds()
	s.Requests += requests
	s.ops(m.now, opCreate, s.cfg.Costs.Create)
	s.ops(m.now, opLookup, s.cfg.Costs.Lookup*lookups(len(m.nodes), requests))
}

// sample looks at how even the load is, over nodes that are given sessions.
func (s *Stats) sample(m *model) {
	var count, sum, squares, most float64
	for i := range m.nodes {
		n := &m.nodes[i]
		if !n.up || n.cordoned {
			continue
		}
		used := float64(n.memory)
		count++
		sum += used
		squares += used * used
		most = max(most, used)
	}
	if sum == 0 {
		return
	}
	mean := sum / count
	s.Balance = append(s.Balance, math.Sqrt(max(0, squares/count-mean*mean))/mean)
	s.Spread = append(s.Spread, most/mean)
}

func (m *model) finish() *Stats {
	for i := range m.nodes {
		m.stats.Living += len(m.nodes[i].sessions)
		for _, w := range m.nodes[i].queue {
			if m.slots[w.slot].turn == w.turn {
				m.stats.Waiting++
			}
		}
	}
	return &m.stats
}

func mean(list []float64) float64 {
	var sum float64
	for _, v := range list {
		sum += v
	}
	return sum / float64(max(len(list), 1))
}

// quantile returns the value that this share of a list does not exceed, and the
// zero value for an empty one.
func quantile[T float64 | time.Duration](list []T, share float64) T {
	if len(list) == 0 {
		var none T
		return none
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[int(share*float64(len(sorted)-1))]
}

// rate is for each second of the day.
func (s *Stats) rate(n float64) float64 { return n / s.cfg.Length.Seconds() }
