package cluster

import (
	"sync"

	"github.com/cove-sandbox/cove"
)

// maxKnown is how many sessions of other nodes are remembered before all are
// forgotten.
const maxKnown = 1 << 16

// memory is which node had a session when it was last asked for. What is wrong in it
// is found out by asking there.
type memory struct {
	most int

	mu    sync.RWMutex
	nodes map[cove.ID]string // guarded by mu
}

func newMemory(most int) *memory { return &memory{most: most, nodes: map[cove.ID]string{}} }

func (k *memory) get(id cove.ID) (string, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	node, ok := k.nodes[id]
	return node, ok
}

func (k *memory) put(id cove.ID, node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.nodes) >= k.most {
		clear(k.nodes)
	}
	k.nodes[id] = node
}

func (k *memory) forget(id cove.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.nodes, id)
}

func (k *memory) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.nodes)
}
