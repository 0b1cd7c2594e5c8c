package cluster_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/platformtest"
	"github.com/cove-sandbox/cove/retry"
)

// TestPlatformOfOneNode runs the whole suite on a node that is the only one of its
// cluster.
func TestPlatformOfOneNode(t *testing.T) {
	tier.Full(t, "TestPlatformThroughTheWrongNode runs through two nodes")
	r := newRedis(t)
	next := settled(t, r.URL(), 400)
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		n := newNode(t, r.URL(), next(), "only")
		n.o = o
		return openHarness(t, n)
	})
}

// TestPlatformThroughTheWrongNode runs what is about sessions through a node that has
// none of them: all of them are at another.
func TestPlatformThroughTheWrongNode(t *testing.T) {
	r := newRedis(t)
	next := settled(t, r.URL(), 300)
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		prefix := next()
		face, owner := newNode(t, r.URL(), prefix, "face"), newNode(t, r.URL(), prefix, "owner")
		face.o, owner.o = o, o
		return openHarness(t, face, owner)
	}, "sessions", "exec", "background", "files", "tar", "watch", "terminal", "output", "contexts", "trials", "snapshots", "ports", "reuse", "idempotency", "list", "runs", "network", "signals", "validation", "blocked", "queue", "paths")
}

// harness is the first of some nodes. Where there are others, that one is given no
// sessions.
type harness struct {
	t     *testing.T
	nodes []*node
}

func openHarness(t *testing.T, nodes ...*node) platformtest.Harness {
	t.Helper()
	h := &harness{t, nodes}
	if err := h.open(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *harness) open() error {
	for _, n := range h.nodes {
		if err := n.open(); err != nil {
			return err
		}
	}
	first := h.nodes[0]
	if len(h.nodes) > 1 {
		if err := first.directory.Cordon(h.t.Context(), first.name, true); err != nil {
			return err
		}
	}
	for _, n := range h.nodes {
		sees(h.t, n, len(h.nodes))
		n.member.Look(h.t.Context())
	}
	return nil
}

func (h *harness) As(p cove.Principal) cove.Platform {
	as := h.nodes[0].member.As(p)
	if on := h.nodes[0].o.AutoRetry; on == nil || *on {
		return retry.On(as)
	}
	return as
}

func (h *harness) Restart() error {
	h.Close()
	return h.open()
}

func (h *harness) Extras() platformtest.Extras { return platformtest.Fake() }

func (h *harness) Close() {
	for _, n := range h.nodes {
		n.close()
	}
}
