package upgradetest_test

import (
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
)

// TestLoss kills a node. What was stopped there and can move starts elsewhere with its
// files; all else that it had is lost, also after it is back.
func TestLoss(t *testing.T) {
	if testing.Short() {
		t.Parallel() // each test of the gate has a cluster of its own, and waits for leases
	}
	archives(t, func(t *testing.T, settings ...string) {
		c := newCluster(t, settings...)
		n2, n3 := c.node("n2"), c.node("n3")
		undo := c.only("n2")
		moves, fixed, runs := c.openOn(n3.client, "n2", small(true)), c.openOn(n3.client, "n2", small(false)), c.openOn(n3.client, "n2", small(true))
		undo()
		look := furnish(t, c, n3, moves)
		for _, id := range []cove.ID{moves, fixed} {
			if s, err := n3.client.Sessions().Stop(t.Context(), id); err != nil || s.State != cove.Stopped || s.Node != "n2" {
				t.Fatalf("%+v %v", s, err)
			}
		}
		n2.die(t)
		awaitLost(t, n3, fixed)
		awaitLost(t, c.node("n1"), runs)
		s, err := n3.client.Sessions().Start(t.Context(), moves)
		if err != nil || s.State != cove.Running || s.Node == "n2" {
			t.Fatalf("start what was stopped on a node that is gone: %+v %v", s, err)
		}
		if got := lookOf(c, c.node("n1"), moves); got != look {
			t.Errorf("after a move there is\n%s\nand there was\n%s", got, look)
		}
		n2.start(t, older)
		for _, at := range c.nodes {
			answersAt(t, c, at, moves, s.Node, look)
			for _, id := range []cove.ID{fixed, runs} {
				if _, err := at.client.Sessions().Get(t.Context(), id); cove.ReasonOf(err) != cove.ReasonNodeLost || cove.CodeOf(err) != cove.NotFound {
					t.Errorf("a lost session, asked at %s when its node is back: %v", at.name, err)
				}
			}
		}
	})
}

// awaitLost waits until a node says that a session is lost. Until then it may only say
// that its node is away.
func awaitLost(t *testing.T, at *node, id cove.ID) {
	t.Helper()
	eventually(t, string(id)+" is lost", func() error {
		_, err := at.client.Sessions().Get(t.Context(), id)
		if cove.ReasonOf(err) == cove.ReasonNodeAway {
			return err
		}
		if cove.ReasonOf(err) != cove.ReasonNodeLost || cove.CodeOf(err) != cove.NotFound {
			t.Fatalf("a session of a node that was killed, asked at %s: %v", at.name, err)
		}
		return nil
	})
}

// answersAt wants a session to be on a node with its files, asked at any.
func answersAt(t *testing.T, c *cluster, at *node, id cove.ID, home, look string) {
	t.Helper()
	if s, err := at.client.Sessions().Get(t.Context(), id); err != nil || s.Node != home {
		t.Errorf("asked at %s, a session of %s: %+v %v", at.name, home, s, err)
	}
	if got := lookOf(c, at, id); got != look {
		t.Errorf("asked at %s there is\n%s\nand there was\n%s", at.name, got, look)
	}
}

// TestStartAtOnce has many start a session that is nobody's, through two nodes at the
// same time. There is one sandbox.
func TestStartAtOnce(t *testing.T) {
	if testing.Short() {
		t.Parallel() // each test of the gate has a cluster of its own, and waits for leases
	}
	c := newCluster(t, "COVE_ARCHIVE_URL=file://"+t.TempDir())
	s, err := c.node("n1").client.Sessions().Open(t.Context(), cove.OpenRequest{Spec: small(true)})
	if err != nil {
		t.Fatal(err)
	}
	home := s.Node
	c.sh(c.node(home), s.ID, "echo kept >kept")
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		c.must(c.node("n1"), "node", "drain", home)
		c.awaitReleased(s.ID)
		next := startAtOnce(t, c, s.ID, home)
		if next == home {
			t.Errorf("it starts on %s, which is cordoned", home)
		}
		sandboxes := map[string]bool{}
		for range 2 {
			for _, at := range c.nodes {
				sandboxes[c.sh(at, s.ID, token+"cat kept")] = true
			}
		}
		if len(sandboxes) != 1 {
			t.Errorf("there is more than one sandbox: %v", sandboxes)
		}
		c.must(c.node("n1"), "node", "uncordon", home)
		c.awaitSandboxes(next)
		home = next
	}
}

// token is for the shell: it prints what only this sandbox has. It is outside of the
// workspace, so that no copy of the files has it.
const token = `cat /proc/sys/kernel/random/uuid >/tmp/new.$$ && { ln /tmp/new.$$ /tmp/token 2>/dev/null; rm /tmp/new.$$; cat /tmp/token; } || exit 90; `

// startAtOnce starts a session through all nodes but its last one, several times each,
// and returns where it is.
func startAtOnce(t *testing.T, c *cluster, id cove.ID, last string) string {
	t.Helper()
	var mu sync.Mutex
	homes := map[string]int{}
	var all sync.WaitGroup
	for _, at := range c.others(last) {
		for range 4 {
			all.Go(func() {
				s, err := at.client.Sessions().Start(t.Context(), id)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && s.State == cove.Running:
					homes[s.Node]++
				case cove.CodeOf(err) == cove.Unavailable: // it moves: to be tried again
				default:
					t.Errorf("start %s at %s: %+v %v", id, at.name, s, err)
				}
			})
		}
	}
	all.Wait()
	if len(homes) != 1 {
		t.Fatalf("%s is on %v", id, homes)
	}
	for home := range homes {
		return home
	}
	return ""
}

// awaitSandboxes waits until one node has the only sandbox of the cluster.
func (c *cluster) awaitSandboxes(home string) {
	c.t.Helper()
	eventually(c.t, "the only sandbox is on "+home, func() error {
		for name, n := range c.ls(c.node(home)) {
			if want := name == home; n.State != cove.NodeReady || (n.Active == 1) != want || n.Active > 1 {
				return cove.Errorf(cove.Conflict, "%s is %s and has %d", name, n.State, n.Active)
			}
		}
		return nil
	})
}

// TestCordonOutlivesTheDirectory has Redis forget all. A node that is being drained
// still is.
func TestCordonOutlivesTheDirectory(t *testing.T) {
	if testing.Short() {
		t.Parallel() // each test of the gate has a cluster of its own, and waits for leases
	}
	c := newCluster(t, "COVE_ARCHIVE_URL=file://"+t.TempDir())
	c.must(c.node("n2"), "node", "drain", "n1")
	before := c.ls(c.node("n1"))["n1"].Seen
	eventually(t, "n1 was told that it is cordoned", func() error {
		if c.ls(c.node("n1"))["n1"].Seen.Equal(before) {
			return cove.Errorf(cove.Unavailable, "it was not heard of since %s", before)
		}
		return nil
	})
	c.redis.Restart(false)
	c.awaitState(cove.NodeReady, "n2", "n3")
	c.awaitState(cove.NodeCordoned, "n1")
	c.notOn("n1")
}
