package clustersim

import (
	"math"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config is a cluster and its day. Zero fields take what [Config.filled] says.
type Config struct {
	Seed      uint64
	Nodes     int
	Sandboxes int           // at once, at the busiest time of the day
	Length    time.Duration // of the day

	NodeMemory   cove.Bytes // of each node; zero is a third more than the busiest time needs
	NodeSessions int        // of each node; zero is the same, in sessions
	Queue        int        // how many may wait at a node
	Patience     time.Duration
	Placement    Placement

	Median time.Duration // of how long sessions last
	Sigma  float64       // of the logarithm of that
	Pace   time.Duration // from one request of a session to its next

	Crashes float64       // for each node and day
	Restart time.Duration // until a node that crashed is back
	Drains  int           // in the day, one after the other
	Drained time.Duration // until a node that is drained takes sessions again
	Movable float64       // share of sessions that a drain can move
	Outage  time.Duration // of the directory, once in the day

	Costs Costs
}

// What the platform does by itself, and how often.
const (
	beatEvery  = 2500 * time.Millisecond // how often a node says how it is, and if it was asked, reads how others are
	leaseTime  = 10 * time.Second        // without a beat until a node is gone
	looksAfter = 4                       // beats: a node that was not asked looks at the others then, and for sessions of those that are gone
	sampled    = time.Minute             // how often the balance is looked at
)

// Bounds on a run, so that it ends.
const (
	maxNodes     = 10_000
	maxSandboxes = 1_000_000
	maxLength    = 7 * 24 * time.Hour
)

// headroom is how much of a node the busiest time of the day takes.
const headroom = 0.75

func (c Config) filled() Config {
	or(&c.Seed, 1)
	or(&c.Nodes, 3)
	or(&c.Sandboxes, 10)
	or(&c.Length, 24*time.Hour)
	or(&c.Median, 20*time.Minute)
	or(&c.Sigma, 1.2)
	or(&c.Pace, 20*time.Second)
	or(&c.Queue, 64)
	or(&c.Placement, BetterOfTwo)
	or(&c.Restart, 2*time.Minute)
	or(&c.Drained, 20*time.Minute)
	or(&c.Costs, Measured())
	share := float64(c.Sandboxes) / float64(max(c.Nodes, 1)) / headroom
	or(&c.NodeSessions, int(math.Ceil(share)))
	// A node must hold the largest flavor, however few sandboxes there are.
	gib := math.Ceil(share * meanMemory() / float64(cove.GiB))
	or(&c.NodeMemory, max(cove.Bytes(gib)*cove.GiB, flavors[len(flavors)-1].memory))
	return c
}

func or[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// check reports the first field that no run could have.
func (c Config) check() error {
	switch {
	case c.Nodes < 1 || c.Nodes > maxNodes:
		return cove.InvalidField("nodes", "%d is not from 1 to %d", c.Nodes, maxNodes)
	case c.Sandboxes < 1 || c.Sandboxes > maxSandboxes:
		return cove.InvalidField("sandboxes", "%d is not from 1 to %d", c.Sandboxes, maxSandboxes)
	case c.Length <= 0 || c.Length > maxLength:
		return cove.InvalidField("length", "%s is not up to %s", c.Length, maxLength)
	case c.Median < time.Second || !(c.Sigma > 0 && c.Sigma <= 3) || c.Pace < time.Millisecond:
		return cove.InvalidField("median", "sessions of %s, a sigma of %v and a request every %s make no day", c.Median, c.Sigma, c.Pace)
	case c.NodeMemory < 0 || c.NodeSessions < 0 || c.Queue < 0 || c.Patience < 0 || c.Restart < 0 || c.Drained < 0 || c.Outage < 0:
		return cove.InvalidField("bounds", "a bound or a time is negative")
	case !(c.Crashes >= 0 && c.Crashes <= 1000) || !(c.Movable >= 0 && c.Movable <= 1) || c.Drains < 0 || c.Drains > maxNodes:
		return cove.InvalidField("failures", "%v crashes, %d drains or a share of %v that can move is too many or too few", c.Crashes, c.Drains, c.Movable)
	}
	return c.Placement.check()
}
