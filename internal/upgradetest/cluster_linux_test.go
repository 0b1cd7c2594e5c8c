package upgradetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/store/redis/redistest"
)

// lease is after how long a node that says nothing is gone.
const lease = 4 * time.Second

// cluster is three nodes and their Redis.
type cluster struct {
	t     *testing.T
	dir   string
	redis *redistest.Server
	nodes []*node
	key   string
}

// newCluster starts a cluster of the older version, until the test ends.
func newCluster(t *testing.T, settings ...string) *cluster {
	t.Helper()
	if os.Getuid() != 0 {
		providertest.Lacks(t, "cluster", "only root can end what a node that was killed leaves in the kernel")
	}
	redis := redistest.Start(t)
	needsLocal(t)
	dir, err := os.MkdirTemp("", "cove-upgrade-") //nolint:usetesting // that is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, dir: dir, redis: redis}
	t.Cleanup(c.close)
	for _, name := range []string{"n1", "n2", "n3"} {
		n := &node{name: name, home: filepath.Join(dir, name), addr: freePort(t), log: filepath.Join(t.ArtifactDir(), name+".log")}
		n.env = append([]string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + n.home, "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"),
			"COVE_HOME=" + n.home, "COVE_ADDR=" + n.addr, "COVE_NODE_ID=" + name, "REDIS_URL=" + redis.URL(),
			"COVE_CLUSTER_SECRET=of-the-cluster-in-a-test-and-of-nobody-else", fmt.Sprintf("COVE_NODE_LEASE_SEC=%d", int(lease.Seconds())),
			"SANDBOX_PROVIDER=local", "POOL_SIZE=0",
		}, settings...)
		c.nodes = append(c.nodes, n)
		n.start(t, older)
	}
	key, err := os.ReadFile(filepath.Join(c.nodes[0].home, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	c.key = strings.TrimSpace(string(key))
	for _, n := range c.nodes {
		if n.client, err = client.New(n.url(), c.key, client.WithAutoRetry(false)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.client.Close() })
	}
	c.awaitState(cove.NodeReady, "n1", "n2", "n3")
	return c
}

// needsLocal skips a test where no local sandboxes can be made.
func needsLocal(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), executable(t, older), "doctor", "--json")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "COVE_HOME=" + t.TempDir()}
	out, err := cmd.Output()
	for line := range bytes.Lines(out) {
		var report struct {
			Name         string
			Capabilities cove.Capabilities
		}
		if json.Unmarshal(line, &report) == nil && report.Name == "local" {
			providertest.Require(t, "local", report.Capabilities)
			return
		}
	}
	t.Fatalf("cove doctor does not know local: %v\n%s", err, out)
}

// freePort returns an address that is the same after a restart: none that the kernel
// gives to others meanwhile.
func freePort(t *testing.T) string {
	t.Helper()
	const first, last, tries = 20_000, 30_000, 100
	var err error
	for range tries {
		addr := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first))
		var l net.Listener
		if l, err = net.Listen("tcp4", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal(err)
	return ""
}

func (c *cluster) close() {
	for _, n := range c.nodes {
		if n.cmd != nil {
			_ = n.cmd.Process.Signal(syscall.SIGTERM) // all at once
		}
	}
	for _, n := range c.nodes {
		n.stop(c.t)
		n.die(c.t)
	}
	// Sandboxes are gone with who held them, as soon as the kernel has seen to it.
	eventually(c.t, "nothing is left of the nodes", func() error {
		var all []error
		for _, n := range c.nodes {
			all = append(all, n.removeGroups())
		}
		return errors.Join(append(all, os.RemoveAll(c.dir))...)
	})
}

func (c *cluster) node(name string) *node {
	c.t.Helper()
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.name == name })
	if i < 0 {
		c.t.Fatalf("there is no node %q", name)
	}
	return c.nodes[i]
}

// others are the nodes but one.
func (c *cluster) others(name string) []*node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n.name == name })
}

// cove runs the command line of a version, asking at a node, and returns its exit code.
func (c *cluster) cove(version string, at *node, args ...string) (out string, code int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, executable(c.t, version), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "COVE_HOME=" + filepath.Join(c.dir, "cli"), "COVE_URL=" + at.url(), "COVE_API_KEY=" + c.key}
	both, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() < 0) {
		c.t.Errorf("cove %s: %v\n%s", strings.Join(args, " "), err, both)
	}
	return string(both), cmd.ProcessState.ExitCode()
}

// must is cove for what has to succeed.
func (c *cluster) must(at *node, args ...string) string {
	c.t.Helper()
	out, code := c.cove(at.version, at, args...)
	if code != 0 {
		c.t.Fatalf("cove %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// seen is a line of cove node ls.
type seen struct {
	ID      string         `json:"node_id"`
	State   cove.NodeState `json:"state"`
	Version string         `json:"version"`
	Active  int            `json:"active_sessions"`
	Seen    time.Time      `json:"seen_at"`
}

// ls is what cove node ls says at a node.
func (c *cluster) ls(at *node) map[string]seen {
	c.t.Helper()
	all := map[string]seen{}
	for line := range strings.Lines(c.must(at, "node", "ls", "--json")) {
		var n seen
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			c.t.Fatalf("%v\n%s", err, line)
		}
		all[n.ID] = n
	}
	return all
}

// awaitState waits until every node that runs says that some are in a state.
func (c *cluster) awaitState(want cove.NodeState, names ...string) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%v are %s", names, want), func() error {
		for _, at := range c.nodes {
			if at.cmd == nil {
				continue
			}
			list, err := at.client.Nodes().List(c.t.Context())
			if err != nil {
				return err
			}
			for _, name := range names {
				i := slices.IndexFunc(list, func(n cove.Node) bool { return n.ID == name })
				if i < 0 || list[i].State != want {
					return fmt.Errorf("%s says of %s: %+v", at.name, name, list)
				}
			}
		}
		return nil
	})
}

// awaitBeats waits until all nodes have renewed their leases, with which each of them
// learns whether it is cordoned.
func (c *cluster) awaitBeats() {
	c.t.Helper()
	since := time.Now()
	eventually(c.t, "all nodes have renewed their leases", func() error {
		list, err := c.node("n1").client.Nodes().List(c.t.Context())
		if err == nil && slices.ContainsFunc(list, func(n cove.Node) bool { return !n.SeenAt.After(since) }) {
			err = fmt.Errorf("n1 says %+v", list)
		}
		return err
	})
}

// small is a sandbox that many fit into a machine of.
func small(moves bool) cove.Spec {
	return cove.Spec{Resources: cove.Resources{Memory: 96 * cove.MiB}, Workspace: cove.Workspace{Size: 64 * cove.MiB, Moves: moves}}
}

// openOn opens a session on a node. All others must be cordoned, or soon.
func (c *cluster) openOn(by *client.Client, name string, spec cove.Spec) cove.ID {
	c.t.Helper()
	var id cove.ID
	eventually(c.t, "a session is opened on "+name, func() error {
		s, err := by.Sessions().Open(c.t.Context(), cove.OpenRequest{Spec: spec})
		if err != nil {
			c.t.Fatal(err)
		}
		if s.Node == name {
			id = s.ID
			return nil
		}
		if _, err := by.Sessions().Close(c.t.Context(), s.ID, false); err != nil {
			c.t.Fatal(err)
		}
		return errors.New("it is on " + s.Node)
	})
	return id
}

// only has new sessions come to one node, until the function that it returns is called.
func (c *cluster) only(name string) (undo func()) {
	c.t.Helper()
	for _, n := range c.others(name) {
		c.must(c.node(name), "node", "drain", n.name)
	}
	return func() {
		c.t.Helper()
		for _, n := range c.others(name) {
			c.must(c.node(name), "node", "uncordon", n.name)
		}
		c.awaitState(cove.NodeReady, "n1", "n2", "n3")
	}
}

// sh runs a line in a session, asked at a node, and returns what it prints.
func (c *cluster) sh(at *node, id cove.ID, line string) string {
	c.t.Helper()
	x, err := at.client.Processes(id).Exec(c.t.Context(), cove.ExecRequest{Line: line})
	if err != nil {
		c.t.Fatalf("%s, asked at %s: %v", id, at.name, err)
	}
	if x.ExitCode != 0 {
		c.t.Fatalf("%s, asked at %s: %q exits with %d: %s", id, at.name, line, x.ExitCode, x.Stderr.Data)
	}
	return string(x.Stdout.Data)
}
