package clustertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// Config is what a cluster is like.
type Config struct {
	Nodes    int // 1: a server by itself, without Redis
	Bound    int // of sandboxes of the tenant at once; 0: none
	Lease    time.Duration
	Settings map[string]string // of all nodes, beside those that a cluster needs
	Logs     string            // the folder for what they write
}

// grace is how long a node that ends in order may be away.
const grace = time.Minute

// forever is the lease of a server by itself, which needs none.
const forever = 24 * time.Hour

// Rig is a cluster that runs for the time of a test.
type Rig struct {
	lease time.Duration
	bound int
	net   *network
	redis *redis
	nodes []*node
	ask   *http.Client
}

// lacks ends a test that a cluster cannot be started for.
func lacks(t *testing.T, format string, args ...any) {
	t.Helper()
	providertest.Lacks(t, "cluster", fmt.Sprintf(format, args...))
}

// Start starts a cluster, and ends it with the test. It needs root, and the programs
// ip and redis-server.
func Start(t *testing.T, c Config) *Rig {
	t.Helper()
	if os.Getuid() != 0 {
		lacks(t, "only root can make networks for the nodes of a cluster")
	}
	for _, name := range []string{"ip", "redis-server"} {
		if _, err := exec.LookPath(name); err != nil {
			lacks(t, "there is no program %s; run make test, which installs it where it can", name)
		}
	}
	dir := t.TempDir() // first, so that it goes last
	names := []string{}
	for i := range c.Nodes {
		names = append(names, fmt.Sprintf("n%d", i+1))
	}
	network, err := newNetwork(t.Context(), append(names, "redis")...)
	if err != nil {
		lacks(t, "the networks of a cluster cannot be made: %v", err)
	}
	r := &Rig{lease: c.Lease, bound: c.Bound, net: network, ask: &http.Client{Transport: &http.Transport{DialContext: network.dial, DisableKeepAlives: true, Proxy: nil}}}
	t.Cleanup(func() { r.close(t) })
	if c.Nodes == 1 {
		r.lease = forever
	} else {
		r.redis = &redis{member: network.members[c.Nodes], dir: filepath.Join(dir, "redis"), log: filepath.Join(c.Logs, "redis.log"), net: network}
		if err := r.redis.start(t.Context()); err != nil {
			t.Fatalf("redis: %v", err)
		}
	}
	for _, m := range network.members[:c.Nodes] {
		r.join(t, c, m, dir)
	}
	r.startNodes(t)
	return r
}

// join makes a node, with a disk of its own.
func (r *Rig) join(t *testing.T, c Config, m *member, dir string) {
	t.Helper()
	top := filepath.Join(dir, m.name)
	if err := os.Mkdir(top, 0o700); err != nil {
		t.Fatal(err)
	}
	n := &node{member: m, program: program.Cove(t), home: filepath.Join(top, "home"), port: clientPort, alone: c.Nodes == 1, log: filepath.Join(c.Logs, m.name+".log"), ask: r.ask, tell: t.Logf}
	var err error
	if n.disk, err = newDisk(m.space, top); err != nil {
		lacks(t, "%v", err)
	}
	n.env = r.environment(n, c)
	r.nodes = append(r.nodes, n)
}

// startNodes starts all nodes and waits until each is a part of the cluster.
func (r *Rig) startNodes(t *testing.T) {
	t.Helper()
	for _, n := range r.nodes {
		if err := n.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.healthy(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range r.nodes {
		var err error
		if n.admin, err = n.key(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.limit(t.Context(), r.bound); err != nil {
		t.Fatal(err)
	}
}

// limit bounds how many sandboxes the tenant may have at once; 0 lifts the bound.
func (r *Rig) limit(ctx context.Context, sessions int) error {
	a, err := r.send(ctx, r.nodes[0], question{http.MethodPut, "/api/tenants/default", map[string]any{"quota": map[string]any{"sessions": sessions}}})
	if err == nil && a.status != http.StatusNoContent {
		err = fmt.Errorf("bound the tenant: status %d: %.200q", a.status, a.body)
	}
	return err
}

// startAll starts all nodes at once.
func (r *Rig) startAll(ctx context.Context) error {
	failed := make(chan error)
	for _, n := range r.nodes {
		go func() { failed <- n.start(ctx) }()
	}
	var all []error
	for range r.nodes {
		all = append(all, <-failed)
	}
	return errors.Join(all...)
}

// healthy waits until all nodes are.
func (r *Rig) healthy(ctx context.Context) error {
	var all []error
	for _, n := range r.nodes {
		all = append(all, until(ctx, patience, n.well))
	}
	return errors.Join(all...)
}

func (r *Rig) environment(n *node, c Config) []string {
	env := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": n.home, "TMPDIR": os.TempDir(),
		"COVE_HOME": n.home, "COVE_ADDR": net.JoinHostPort(n.address, clientPort),
		"COVE_NODE_ID": n.name, "SANDBOX_PROVIDER": "local", "POOL_SIZE": "0", "COVE_DISK_RESERVE_MB": "8",
		"MSB_ENABLE_LRU_EVICTION": "false", // only clients stop sessions
	}
	if !n.alone {
		maps.Copy(env, map[string]string{
			"COVE_NODE_ADDR":      net.JoinHostPort(n.address, nodePort),
			"COVE_NODE_LEASE_SEC": fmt.Sprint(c.Lease.Seconds()), "COVE_NODE_GRACE_SEC": fmt.Sprint(grace.Seconds()), "COVE_CLUSTER_SECRET": "of-the-cluster-in-a-test-and-of-nobody-else",
			"REDIS_URL": r.redis.url(),
		})
	}
	maps.Copy(env, c.Settings)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, name+"="+env[name])
	}
	return all
}

// close ends the sessions and the nodes as an operator would, then whatever is left, of
// which there must be nothing.
func (r *Rig) close(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	if err := r.closeAll(ctx); err != nil {
		t.Errorf("close what is left: %v", err)
	}
	done := make(chan struct{})
	for _, n := range r.nodes {
		go func() {
			n.end(syscall.SIGTERM)
			done <- struct{}{}
		}()
	}
	for range r.nodes {
		<-done
	}
	if r.redis != nil {
		r.redis.kill()
	}
	for _, n := range r.nodes {
		if left := n.remains(); len(left) > 0 {
			t.Errorf("%s ended, and all of its sessions had; it left the sandboxes %v", n.name, left)
		}
	}
	if err := r.net.close(); err != nil {
		t.Error(err)
	}
	for _, n := range r.nodes { // the kernel may take a moment after the last process
		if err := until(ctx, patience, n.removeGroups); err != nil {
			t.Error(err)
		}
	}
}
