package clustertest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// Fault is something that is done to a cluster for a while.
type Fault struct {
	Op   history.Op
	Node int // to which
	Peer int // the other one of a cut between nodes
	At   time.Duration
	For  time.Duration
}

// card is a fault that the deck has, for less than a lease or for more.
type card struct {
	op   history.Op
	long bool
}

// deck is dealt to its end before it is shuffled again, so that a run of a minute
// has seen almost all of it. Redis forgets rarely.
func deck() []card {
	return []card{
		{history.Crash, false},
		{history.Crash, true},
		{history.Freeze, false},
		{history.Freeze, true},
		{history.CutRedis, false},
		{history.CutRedis, true},
		{history.CutNodes, false},
		{history.CutNodes, true},
		{history.RedisRestart, false},
		{history.RedisLoss, false},
		{history.Leave, false},
		{history.Power, false},
		{history.Power, true},
		{history.RedisRestart, true},
		{history.EmptyStart, false},
		{history.EmptyStart, true},
		{history.EmptyCluster, false},
		{history.DiskFull, false},
		{history.DiskFull, true},
	}
}

// warmUp is how long nothing is broken at first.
const warmUp = 2 * time.Second

// Plan returns what is done to a cluster of so many nodes in a time. It is the same
// for the same seed. One or two faults are there at a time, and all are healed
// before the next ones come.
func Plan(seed uint64, nodes int, length, lease time.Duration) []Fault {
	p := &planner{rng: rand.New(rand.NewPCG(seed, 0)), nodes: nodes, lease: lease}
	for at := warmUp; ; {
		round := p.round(at)
		end := at
		for _, f := range round {
			end = max(end, f.At+f.For)
		}
		if end > length {
			return p.all
		}
		p.all = append(p.all, round...)
		at = end + p.part(0.3, 1.0)
	}
}

type planner struct {
	rng   *rand.Rand
	nodes int
	lease time.Duration
	cards []card
	all   []Fault
}

// part draws a time between two parts of a lease.
func (p *planner) part(from, to float64) time.Duration {
	return time.Duration((from + (to-from)*p.rng.Float64()) * float64(p.lease))
}

func (p *planner) deal() card {
	if len(p.cards) == 0 {
		p.cards = deck()
		p.rng.Shuffle(len(p.cards), func(i, k int) { p.cards[i], p.cards[k] = p.cards[k], p.cards[i] })
	}
	c := p.cards[0]
	p.cards = p.cards[1:]
	return c
}

func (p *planner) round(at time.Duration) []Fault {
	first := p.draw(at, -1)
	if p.rng.IntN(100) >= 45 {
		return []Fault{first}
	}
	second := p.draw(at+min(p.part(0.1, 0.8), first.For), first.Node)
	ofAll := first.Op == history.EmptyCluster || second.Op == history.EmptyCluster
	if ofAll || ofRedis(first.Op) && ofRedis(second.Op) {
		second.At = first.At + first.For + p.part(0.1, 0.3) // one Redis has one fault at a time
	}
	return []Fault{first, second}
}

func ofRedis(op history.Op) bool {
	return slices.Contains([]history.Op{history.RedisRestart, history.RedisLoss, history.EmptyStart, history.EmptyCluster}, op)
}

// draw deals a fault for a node other than one.
func (p *planner) draw(at time.Duration, other int) Fault {
	c := p.deal()
	// Package history accepts that a lease runs out in a fault of 0.6 of it or more. A
	// short fault stays well below that, for machines with other work.
	f := Fault{Op: c.op, At: at, For: p.part(0.15, 0.45)}
	if c.long {
		f.For = p.part(1.4, 2.5)
	}
	f.Node = p.rng.IntN(p.nodes)
	if f.Node == other {
		f.Node = (f.Node + 1) % p.nodes
	}
	f.Peer = (f.Node + 1 + p.rng.IntN(p.nodes-1)) % p.nodes
	return f
}
