package upgradetest_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

// TestEmptyRedisAtStart kills the server of a node, has Redis lose all, and starts the
// node again: its sessions are there, those with a sandbox and those that are stopped.
func TestEmptyRedisAtStart(t *testing.T) {
	if testing.Short() {
		t.Parallel() // each test of the gate has a cluster of its own, and waits for leases
	}
	c := newCluster(t)
	n1, n2 := c.node("n1"), c.node("n2")
	undo := c.only("n2")
	runs, stopped := c.openOn(n1.client, "n2", small(false)), c.openOn(n1.client, "n2", small(false))
	undo()
	c.awaitBeats() // Redis is about to lose what the nodes were told
	looks := map[cove.ID]string{runs: furnish(t, c, n1, runs), stopped: furnish(t, c, n1, stopped)}
	program, err := n1.client.Processes(runs).Start(t.Context(), cove.ExecRequest{Line: "read line; echo got $line", KeepStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n1.client.Sessions().Stop(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	_ = n2.cmd.Process.Kill() // its keeper goes on
	<-n2.ended
	c.redis.Restart(false)
	n2.start(t, older)
	c.awaitState(cove.NodeReady, "n1", "n2", "n3")
	answersAt(t, c, n1, runs, "n2", looks[runs])
	if err := n1.client.Processes(runs).Input(t.Context(), program.PID, []byte("it\n"), false); err != nil {
		t.Errorf("input for a program that goes on: %v", err)
	}
	if x, err := n1.client.Processes(runs).Wait(t.Context(), program.PID); err != nil || string(x.Stdout.Data) != "got it\n" {
		t.Errorf("a program that goes on: %+v, %v", x, err)
	}
	if s, err := n1.client.Sessions().Get(t.Context(), stopped); err != nil || s.State != cove.Stopped {
		t.Fatalf("the session that was stopped: %+v, %v", s, err)
	}
	if _, err := n1.client.Sessions().Start(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	answersAt(t, c, n1, stopped, "n2", looks[stopped])
}
