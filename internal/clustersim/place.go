package clustersim

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/placement"
)

// Placement is a way to say which nodes are asked first.
type Placement string

// The ways. The platform has the first; the others are there to be compared.
const (
	BetterOfTwo Placement = "better-of-two" // of two by chance
	LeastLoaded Placement = "least-loaded"  // of all, by what they announced
	Chance      Placement = "chance"        // whatever they announced
)

// Placements returns all ways.
func Placements() []Placement { return []Placement{BetterOfTwo, LeastLoaded, Chance} }

func (p Placement) check() error {
	if slices.Contains(Placements(), p) {
		return nil
	}
	var names []string
	for _, o := range Placements() {
		names = append(names, string(o))
	}
	return cove.InvalidField("placement", "%.40q is unknown; use one of %s", p, strings.Join(names, ", "))
}

// order returns the nodes to be asked, as they are announced.
func (p Placement) order(seen []cove.Node, memory cove.Bytes, rng *rand.Rand) []cove.Node {
	if p == Chance {
		return byChance(seen, rng)
	}
	order, err := placement.Order(seen, placement.Want{Memory: memory}, rng.IntN)
	if err != nil {
		return nil
	}
	if p == LeastLoaded {
		slices.SortStableFunc(order, func(a, b cove.Node) int { return int((free(b) - free(a)) / cove.MiB) })
	}
	return order
}

func free(n cove.Node) cove.Bytes { return n.Capacity.Memory - n.Used.Memory }

// byChance returns as many nodes as [placement.Order] does, or fewer.
func byChance(seen []cove.Node, rng *rand.Rand) []cove.Node {
	var order []cove.Node
	for tries := 0; tries < 4*placement.Most && len(order) < min(placement.Most, len(seen)); tries++ {
		n := seen[rng.IntN(len(seen))]
		if n.State == cove.NodeReady && !slices.ContainsFunc(order, func(o cove.Node) bool { return o.ID == n.ID }) {
			order = append(order, n)
		}
	}
	return order
}
