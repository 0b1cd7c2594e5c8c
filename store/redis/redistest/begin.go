package redistest

import (
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/redis"
)

// shortLease is the lease of the node that begins a directory: the directory settles for
// as long.
const shortLease = 20 * time.Millisecond

// Begin has a node with a short lease join the empty directory at url and leave it, and
// returns how long the directory still settles. Nodes that join after that need not wait
// a lease of their own.
func Begin(t testing.TB, url, prefix, node string) time.Duration {
	t.Helper()
	dir, err := redis.Open(t.Context(), redis.Config{URL: url, Prefix: prefix, Node: node, Instance: "before", Lease: shortLease})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	}()
	pulse, err := dir.Beat(t.Context(), cove.Node{ID: node})
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine the lease may have ended by itself.
	if err := dir.Leave(t.Context(), 0); err != nil && cove.ReasonOf(err) != cove.ReasonFenced {
		t.Fatal(err)
	}
	return pulse.Settling
}
