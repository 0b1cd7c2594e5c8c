package clustersim

import (
	"math"
	"time"
)

// Costs is how many operations of the directory each thing takes. A script counts
// as one, however much it does.
type Costs struct {
	Create  float64 // of a session: the claim with its record, and what it becomes
	Close   float64 // of a session
	Refused float64 // for a session that nobody took: its claim, and its end
	Move    float64 // of a session, in a drain: stopped, adopted, started
	Lost    float64 // for a session of a node that is gone
	Lookup  float64 // of a session that a node does not know
	Beat    float64 // of a node, every 2.5 s
	Members float64 // to read all nodes, where what is known is older than a beat
	Sweep   float64 // of a node, every 10 s
}

// Measured is what a test of internal/cluster counts at a real Redis: it fails where
// they are others. A create is one for a user and a thread, which are looked up first.
func Measured() Costs {
	return Costs{Create: 3, Close: 1, Refused: 1, Move: 11, Lost: 1, Lookup: 1, Beat: 1, Members: 1, Sweep: 1}
}

// op is a reason to ask the directory.
type op int

const (
	opCreate op = iota
	opClose
	opRefused
	opMove
	opSweep
	opLookup
	opBeat
	opMembers
	opKinds
)

var opNames = [opKinds]string{"create", "close", "refused", "move", "sweep", "lookup", "heartbeat", "members"}

// burden is what the directory was asked.
type burden struct {
	total  [opKinds]float64
	window int64 // the number of the one that is counted
	within float64
	peak   float64 // of all windows, without lookups
}

// opWindow is the time over which the busiest moment is averaged.
const opWindow = 10 * time.Second

func (b *burden) add(now time.Duration, o op, n float64) {
	b.total[o] += n
	if o == opLookup {
		return // they are counted when a session begins, and happen while it is there
	}
	if w := int64(now / opWindow); w != b.window {
		b.window, b.within = w, 0
	}
	b.within += n
	b.peak = max(b.peak, b.within)
}

func (b *burden) sum() float64 {
	var all float64
	for _, n := range b.total {
		all += n
	}
	return all
}

// lookups is how many nodes that do not have a session will look it up, where each
// of its requests comes to any node, and a node remembers what it looked up: those
// that get at least one of them.
func lookups(nodes int, requests float64) float64 {
	n := float64(nodes)
	return (n - 1) * (1 - math.Pow(1-1/n, requests))
}
