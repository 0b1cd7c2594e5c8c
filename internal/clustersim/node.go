package clustersim

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// session is a slot for one that runs or waits. Slots are used again; turn says
// how often.
type session struct {
	turn    uint32
	node    int32
	place   int32 // in the list of the node
	runs    bool
	movable bool
	memory  cove.Bytes
	since   time.Duration // when it came
	length  time.Duration
	ends    time.Duration // while it runs
}

// node is how a node really is; what others think of it is in their
// pictures.
type node struct {
	id       string
	up       bool
	cordoned bool
	beat     time.Duration // the last one
	memory   cove.Bytes    // in use
	capacity cove.Bounds
	sessions []int32   // those that run
	queue    []waiting // those that wait, in their order; some may have given up
	begun    int       // since the last announcement
	beats    int
	phase    int      // the tick of each ten at which it beats
	wanted   bool     // it was asked for a session since it last looked at the others
	view     *picture // what it knows of the others
}

// waiting is a slot in a queue, if its turn is still the same.
type waiting struct {
	slot int32
	turn uint32
}

// takes reports whether a node has room now: at its own gate, where nothing is
// old. Nobody passes those who wait.
func (n *node) takes(memory cove.Bytes) bool {
	return n.up && !n.cordoned && n.fits(memory)
}

func (n *node) fits(memory cove.Bytes) bool {
	return (n.capacity.Memory == 0 || n.memory+memory <= n.capacity.Memory) &&
		(n.capacity.Sessions == 0 || len(n.sessions) < n.capacity.Sessions)
}

// announce is what a node says of itself.
func (n *node) announce(state cove.NodeState) cove.Node {
	return cove.Node{
		ID: n.id, State: state, Providers: announced, Capacity: n.capacity,
		Used: cove.Bounds{Sessions: len(n.sessions), Memory: n.memory}, Sessions: len(n.sessions),
	}
}

// announced is the same for all nodes: what differs between them is their load.
var announced = []cove.NodeProvider{{Name: "local", Boundary: cove.BoundaryNamespaces, Default: true}}
