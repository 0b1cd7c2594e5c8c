package clustertest

import (
	"math/rand/v2"
	"time"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// PlanServer returns what is done to a server by itself until it was killed so many
// times. One thing is done after the other: At is how long nothing is done before. It is
// the same for the same seed.
func PlanServer(seed uint64, kills int) []Fault {
	p := &planner{rng: rand.New(rand.NewPCG(seed, 1)), nodes: 1}
	between := func(from, to int) time.Duration {
		return time.Duration(from+p.rng.IntN(to-from)) * time.Millisecond
	}
	var all []Fault
	for killed := 0; killed < kills; {
		if len(p.cards) == 0 {
			p.cards = serverDeck()
			p.rng.Shuffle(len(p.cards), func(i, k int) { p.cards[i], p.cards[k] = p.cards[k], p.cards[i] })
		}
		f := Fault{Op: p.cards[0].op, At: between(250, 900), For: between(0, 150)}
		p.cards = p.cards[1:]
		switch f.Op { //nolint:exhaustive // the others kill it
		case history.Freeze, history.DiskFull:
			f.For = between(500, 1500)
		default:
			killed++
		}
		all = append(all, f)
	}
	return all
}

// serverDeck is dealt to its end before it is shuffled again, so that ten kills have seen
// all of it.
func serverDeck() []card {
	deck := []card{{op: history.Freeze}, {op: history.DiskFull}, {op: history.DatabaseLoss}}
	for range 6 {
		deck = append(deck, card{op: history.Crash})
	}
	return deck
}
