package redistest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Sentinels is a master, its replica, and a Sentinel that watches them.
type Sentinels struct {
	Master, Replica, Sentinel *Server
}

const masterName = "cove"

// StartSentinels starts a master, a replica that has all of it, and a Sentinel.
func StartSentinels(t testing.TB) *Sentinels {
	t.Helper()
	master := start(t, "--appendonly", "yes", "--min-replicas-to-write", "1", "--min-replicas-max-lag", "5")
	replica := start(t, "--appendonly", "yes", "--replicaof", fmt.Sprintf("127.0.0.1 %d", master.port))
	replica.until("master_link_status:up", "INFO", "replication")
	sentinel := start(t, "--sentinel")
	sentinel.Do("SENTINEL", "MONITOR", masterName, "127.0.0.1", fmt.Sprint(master.port), "1")
	sentinel.Do("SENTINEL", "SET", masterName, "down-after-milliseconds", "500", "failover-timeout", "5000")
	sentinel.until("num-slaves\n1", "SENTINEL", "MASTER", masterName)
	return &Sentinels{Master: master, Replica: replica, Sentinel: sentinel}
}

// URL returns what to open the set with. The second Sentinel is one that does
// not answer.
func (s *Sentinels) URL() string {
	return "redis+sentinel://" + s.Sentinel.Addr() + ",127.0.0.1:1/" + masterName + "?db=0"
}

// Failover kills the master when the replica has all of it, and waits until the replica
// is the master.
func (s *Sentinels) Failover() {
	s.Master.t.Helper()
	// Not by WAIT, which is about the writes of its own connection alone.
	written := s.Master.replication("master_repl_offset")
	for deadline := time.Now().Add(patience); s.Replica.replication("slave_repl_offset") < written; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Master.t.Fatal("the replica does not get what the master has")
		}
	}
	s.Master.Stop()
	s.Replica.until("role:master", "INFO", "replication")
	s.Sentinel.until(fmt.Sprint(s.Replica.port), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
}

// replication reads a number that a server tells about its replication.
func (s *Server) replication(field string) (n int64) {
	s.t.Helper()
	info := s.Do("INFO", "replication")
	_, after, _ := strings.Cut(info, "\n"+field+":")
	if _, err := fmt.Sscan(after, &n); err != nil {
		s.t.Fatalf("there is no %s in %q: %v", field, info, err)
	}
	return n
}

// Cluster is a Redis Cluster of three masters without replicas.
type Cluster struct{ Nodes []*Server }

const slots = 16384

// StartCluster starts three masters that share all slots.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	const n = 3
	for i := range n {
		s := start(t, "--appendonly", "yes", "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(freePort(t)), "--cluster-node-timeout", "5000")
		s.Do("CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
		s.Do("CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(i*slots/n), fmt.Sprint((i+1)*slots/n-1))
		c.Nodes = append(c.Nodes, s)
	}
	first := c.Nodes[0]
	for _, s := range c.Nodes[1:] {
		first.Do("CLUSTER", "MEET", "127.0.0.1", fmt.Sprint(s.port), s.busPort())
	}
	for _, s := range c.Nodes {
		s.until("cluster_state:ok", "CLUSTER", "INFO")
		s.until(fmt.Sprintf("cluster_known_nodes:%d", n), "CLUSTER", "INFO")
		s.until(fmt.Sprintf("cluster_size:%d", n), "CLUSTER", "INFO")
	}
	return c
}

// busPort is where the server talks to others of its cluster.
func (s *Server) busPort() string {
	for i, a := range s.args {
		if a == "--cluster-port" {
			return s.args[i+1]
		}
	}
	return ""
}

// URL returns what to open the cluster with.
func (c *Cluster) URL() string {
	var addrs []string
	for _, s := range c.Nodes {
		addrs = append(addrs, s.Addr())
	}
	return "redis+cluster://" + strings.Join(addrs, ",")
}
