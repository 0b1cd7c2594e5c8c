package cli

import (
	"sync"

	"github.com/cove-sandbox/cove"
)

// maxCollected bounds what is kept of each stream for an answer in JSON. What
// is longer is better read as it comes, without --json.
const maxCollected = 128 << 20

// collector keeps all that a program writes.
type collector struct {
	mu             sync.Mutex
	stdout, stderr []byte // guarded by mu
}

func (c *collector) write(chunk cove.Chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := &c.stdout
	if chunk.Stream == cove.Stderr {
		to = &c.stderr
	}
	room := min(len(chunk.Data), maxCollected-len(*to))
	*to = append(*to, chunk.Data[:room]...)
}

// fill puts what was collected into the place of what an answer has room for.
// The id of the output goes: with the sandbox, nothing is kept under it.
func (c *collector) fill(ex *cove.Execution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ex.OutputID = ""
	for _, s := range []struct {
		to  *cove.Output
		all []byte
	}{{&ex.Stdout, c.stdout}, {&ex.Stderr, c.stderr}} {
		if len(s.all) > len(s.to.Data) {
			s.to.Data = s.all
			s.to.Truncated = int64(len(s.all)) < s.to.Bytes
		}
	}
}
