package upgradetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/bucket/s3test"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// archives runs a test with each place where nodes can share archives.
func archives(t *testing.T, test func(t *testing.T, settings ...string)) {
	t.Run("folder", func(t *testing.T) {
		test(t, "COVE_ARCHIVE_URL=file://"+filepath.Join(t.TempDir(), "archives"))
	})
	t.Run("s3", func(t *testing.T) {
		tier.Full(t, "the same with a folder; internal/archive and internal/bucket have tests with S3")
		s := s3test.Start(t, os.Getenv("COVE_TEST_S3"))
		test(t, "COVE_ARCHIVE_URL="+s.URL(s.Address, "cove"), "COVE_ARCHIVE_ACCESS_KEY="+s3test.AccessKey, "COVE_ARCHIVE_SECRET_KEY="+s3test.SecretKey)
	})
}

// TestDrain empties a node: what can move is stopped as soon as it is idle and starts
// elsewhere with all its files, what cannot stays and is served.
func TestDrain(t *testing.T) {
	tier.Full(t, "TestLoss moves sessions between nodes; internal/cluster has tests of drains")
	archives(t, func(t *testing.T, settings ...string) {
		c := newCluster(t, settings...)
		n1, n2, n3 := c.node("n1"), c.node("n2"), c.node("n3")
		undo := c.only("n1")
		looks := map[cove.ID]string{}
		for range 2 {
			id := c.openOn(n2.client, "n1", small(true))
			looks[id] = furnish(t, c, n2, id)
		}
		busy, background, stays := c.openOn(n1.client, "n1", small(true)), c.openOn(n1.client, "n1", small(true)), c.openOn(n3.client, "n1", small(false))
		looks[stays] = furnish(t, c, n3, stays)
		ran := occupy(t, n3, busy, background)
		undo()

		if out, code := c.cove(older, n3, "node", "drain", "n1", "--wait", "--timeout", "3s"); code != 124 {
			t.Errorf("a node with sessions that stay is drained: exit code %d\n%s", code, out)
		}
		waited := make(chan string, 1)
		go func() {
			out, code := c.cove(older, n2, "node", "drain", "n1", "--wait", "--timeout", "60s")
			waited <- fmt.Sprintf("%d %s", code, out)
		}()
		for id := range looks {
			if id != stays {
				c.awaitReleased(id)
			}
		}
		served(t, c, n2, map[cove.ID]string{stays: looks[stays]}, "n1")
		for _, id := range []cove.ID{busy, background} {
			if s := c.record(n2, id); s.Node != "n1" || s.State != cove.Running {
				t.Errorf("a busy session is taken from its node: %+v", s)
			}
			c.sh(n2, id, "touch go")
		}
		ran(t)
		c.awaitReleased(busy)
		c.awaitReleased(background)
		c.notOn("n1")
		moved(t, c, looks, stays)
		for _, id := range []cove.ID{busy, background} {
			moved(t, c, map[cove.ID]string{id: ""}, "")
			if got := c.sh(n1, id, "cat out"); got != "before\nafter\n" {
				t.Errorf("of a session that was busy, %q moved", got)
			}
		}

		served(t, c, n3, map[cove.ID]string{stays: looks[stays]}, "n1")
		if _, err := n3.client.Sessions().Close(t.Context(), stays, false); err != nil {
			t.Fatal(err)
		}
		if got := <-waited; got != "0 n1\n" {
			t.Errorf("cove node drain --wait says %q", got)
		}
		if v := c.ls(n1)["n1"]; v.State != cove.NodeCordoned || v.Active != 0 {
			t.Errorf("cove node ls says of a node that was drained: %+v", v)
		}
		c.must(n2, "node", "uncordon", "n1")
		c.openOn(n2.client, "n1", small(false))
	})
}

// occupy has a program run in each of two sessions, in the foreground of one and in the
// background of the other, until there is a file go. It returns what wants the first
// to have ended well.
func occupy(t *testing.T, at *node, foreground, background cove.ID) func(t *testing.T) {
	t.Helper()
	const line = "echo before >out; until [ -e go ]; do sleep 0.1; done; echo after >>out"
	said := make(chan error, 1)
	go func() {
		x, err := at.client.Processes(foreground).Exec(t.Context(), cove.ExecRequest{Line: line})
		if err == nil && x.ExitCode != 0 {
			err = fmt.Errorf("exit code %d", x.ExitCode)
		}
		said <- err
	}()
	if _, err := at.client.Processes(background).Start(t.Context(), cove.ExecRequest{Line: line}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []cove.ID{foreground, background} {
		eventually(t, "a program runs", func() error {
			_, err := at.client.Files(id).Stat(t.Context(), "out")
			return err
		})
	}
	return func(t *testing.T) {
		t.Helper()
		select {
		case err := <-said:
			if err != nil {
				t.Errorf("a program in a session that moves when it is idle: %v", err)
			}
		case <-time.After(patience):
			t.Fatal("the program does not end")
		}
	}
}

// record is how a list shows a session, which does not take it up as asking for it does.
func (c *cluster) record(at *node, id cove.ID) cove.Session {
	c.t.Helper()
	for s, err := range at.client.Sessions().List(c.t.Context(), cove.SessionFilter{}) {
		if err != nil {
			c.t.Fatal(err)
		}
		if s.ID == id {
			return *s
		}
	}
	c.t.Fatalf("%s is in no list", id)
	return cove.Session{}
}

// awaitReleased waits until a session is nobody's.
func (c *cluster) awaitReleased(id cove.ID) {
	c.t.Helper()
	eventually(c.t, string(id)+" is nobody's", func() error {
		if s := c.record(c.node("n3"), id); s.Node != "" || s.State != cove.Stopped {
			return fmt.Errorf("it is %s on %q", s.State, s.Node)
		}
		return nil
	})
}

// served wants sessions to be where they were, with what they had.
func served(t *testing.T, c *cluster, at *node, looks map[cove.ID]string, node string) {
	t.Helper()
	for id, look := range looks {
		if s, err := at.client.Sessions().Get(t.Context(), id); err != nil || s.Node != node || s.State != cove.Running {
			t.Errorf("a session that stays: %+v %v", s, err)
		}
		if got := lookOf(c, at, id); got != look {
			t.Errorf("a session that stays has\n%s\nand had\n%s", got, look)
		}
	}
}

// moved starts sessions that are nobody's, through each node, and wants them elsewhere
// than on n1 with what they had.
func moved(t *testing.T, c *cluster, looks map[cove.ID]string, but cove.ID) {
	t.Helper()
	i := 0
	for id, look := range looks {
		if id == but {
			continue
		}
		i++
		s, err := c.nodes[i%len(c.nodes)].client.Sessions().Start(t.Context(), id)
		if err != nil {
			t.Errorf("start %s elsewhere: %v", id, err)
			continue
		}
		if s.State != cove.Running || s.Node == "n1" || s.Node == "" {
			t.Errorf("a session that moved is %s on %q", s.State, s.Node)
		}
		for _, at := range c.nodes {
			if got := lookOf(c, at, id); look != "" && got != look {
				t.Errorf("after a move there is\n%s\nand there was\n%s", got, look)
			}
		}
	}
}

// notOn opens sessions and wants none to be on a node.
func (c *cluster) notOn(name string) {
	c.t.Helper()
	for i := range 12 {
		at := c.nodes[i%len(c.nodes)].client.Sessions()
		var s *cove.Session
		eventually(c.t, "a session is opened", func() (err error) { // a new directory settles first
			s, err = at.Open(c.t.Context(), cove.OpenRequest{Spec: small(i%2 == 0)})
			return err
		})
		if s.Node == name {
			c.t.Errorf("a new session is on %s, which is cordoned", name)
		}
		if _, err := at.Close(c.t.Context(), s.ID, false); err != nil {
			c.t.Fatal(err)
		}
	}
}
