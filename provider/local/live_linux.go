package local

import (
	"sync"

	"github.com/cove-sandbox/cove"
)

// names is a set of names. Methods are safe for concurrent use.
type names struct {
	mu  sync.Mutex
	set map[cove.ID]bool // guarded by mu
}

func (n *names) add(id cove.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.set == nil {
		n.set = map[cove.ID]bool{}
	}
	n.set[id] = true
}

func (n *names) remove(id cove.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.set, id)
}

func (n *names) has(id cove.ID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.set[id]
}
