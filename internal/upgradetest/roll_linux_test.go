package upgradetest_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// TestRollingUpgrade restarts three nodes one after the other, twice around, each time
// with the other version, under clients. The keepers hold the sandboxes: nothing is
// lost. The gate goes around once and has one executable: it restarts the nodes and
// upgrades none.
func TestRollingUpgrade(t *testing.T) {
	if testing.Short() {
		t.Parallel() // each test of the gate has a cluster of its own, and waits for leases
	}
	c := newCluster(t)
	l, stop := startLoad(c, 8, small(false))
	everywhere(t, l)
	for _, version := range tier.Pick([]string{newer}, newer, older) {
		for _, n := range c.nodes {
			l.restarting(n.name, true)
			n.stop(t)
			n.start(t, version)
			for _, h := range l.all() {
				if h.home == n.name {
					answers(t, c, h.id)
				}
			}
			c.awaitState(cove.NodeReady, n.name)
			l.restarting(n.name, false)
		}
		for _, at := range c.nodes {
			for _, n := range c.ls(at) {
				if n.State != cove.NodeReady || n.Version != version && !testing.Short() { // one executable, and so one version
					t.Errorf("after all are %s, cove node ls says at %s: %+v", version, at.name, n)
				}
			}
		}
	}
	stop()
	l.check(t)
	l.checkFiles(t)
}

// everywhere waits until each node has sessions.
func everywhere(t *testing.T, l *load) {
	t.Helper()
	eventually(t, "each node has sessions", func() error {
		homes := map[string]bool{}
		for _, h := range l.all() {
			homes[h.home] = true
		}
		if len(homes) < len(l.c.nodes) {
			return cove.Errorf(cove.Unavailable, "only %v have some", homes)
		}
		return nil
	})
}

// answers waits until every node answers for a session. Nobody may say that it is lost.
func answers(t *testing.T, c *cluster, id cove.ID) {
	t.Helper()
	for _, at := range c.nodes {
		eventually(t, at.name+" answers for "+string(id), func() error {
			_, err := at.client.Sessions().Get(t.Context(), id)
			if err != nil && cove.CodeOf(err) != cove.Unavailable {
				t.Fatalf("%s, asked at %s: %v", id, at.name, err)
			}
			return err
		})
	}
}

// TestUpgradeWithoutKeeper restarts a node whose keeper does not outlive its server, as
// in a container. Its sessions are lost, and say so from every node; those of others
// are not touched, and clients of theirs notice nothing.
func TestUpgradeWithoutKeeper(t *testing.T) {
	tier.Full(t, "TestLoss ends a node and its keeper; the gate has one version")
	c := newCluster(t)
	l, stop := startLoad(c, 8, small(false))
	everywhere(t, l)
	n := c.node("n2")
	l.perish(n.name)
	l.restarting(n.name, true)
	n.stop(t)
	n.die(t)
	for _, h := range l.all() { // it may be back: nobody says that they are lost
		if h.home != n.name {
			continue
		}
		if _, err := c.node("n1").client.Sessions().Get(t.Context(), h.id); cove.ReasonOf(err) != cove.ReasonNodeAway {
			t.Errorf("while %s is away, one of its sessions answers %v", n.name, err)
		}
	}
	n.start(t, newer)
	before := l.all()
	c.awaitState(cove.NodeReady, n.name)
	lost := 0
	for _, h := range before {
		if h.home == n.name && lostEverywhere(t, c, h) {
			lost++
		}
	}
	stop()
	if lost == 0 || lost == len(before) {
		t.Fatalf("%d of %d sessions are lost", lost, len(before))
	}
	l.check(t)
	l.checkFiles(t)
	if v := c.ls(c.node("n1")); v["n1"].Version != older || v["n2"].Version != newer || v["n3"].Version != older {
		t.Errorf("cove node ls says %v", v)
	}
}

// lostEverywhere wants all nodes to say that a session is lost, and reports whether it
// is: one that was opened while its node came back is not.
func lostEverywhere(t *testing.T, c *cluster, h *held) bool {
	t.Helper()
	if _, err := c.node(h.home).client.Sessions().Get(t.Context(), h.id); err == nil {
		return false
	}
	for _, at := range c.nodes {
		eventually(t, string(h.id)+" is lost", func() error {
			_, err := at.client.Sessions().Get(t.Context(), h.id)
			if cove.ReasonOf(err) == cove.ReasonNodeAway {
				return err // others learn where the node is now
			}
			if cove.ReasonOf(err) != cove.ReasonNodeLost || cove.CodeOf(err) != cove.NotFound {
				t.Fatalf("a session of %s, asked at %s: %v", h.home, at.name, err)
			}
			return nil
		})
	}
	h.lost.Store(true)
	return true
}
