package cove_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// ordinary is a user that nobody is.
const ordinary = 61357

// trialCluster is one that scripts/cluster.sh made, in a folder that looks like a
// checkout with a build.
type trialCluster struct {
	t        *testing.T
	checkout string
	dir      string
	user     bool
	url      string
	key      string
	platform *client.Client
}

// TestCluster brings up three nodes behind one address, uses them through it, kills
// one, and takes everything down.
func TestCluster(t *testing.T) {
	for _, program := range []string{"redis-server", "haproxy", "curl"} {
		if _, err := exec.LookPath(program); err != nil && !exists("/usr/sbin/"+program) {
			providertest.Lacks(t, "cluster", program+" is not installed")
		}
	}
	linuxtest.Users(t, func(t *testing.T, user bool) {
		if user && os.Getuid() != 0 {
			user = false // who runs the test is one
		}
		if user {
			tier.Full(t, "TestCluster/root starts the same cluster")
		}
		c := newTrialCluster(t, user)
		c.up()
		at := c.spread()
		for node, id := range at {
			c.execThrough(id)
			c.streamThrough(id)
			c.terminalThrough(id)
			t.Logf("%s answers through %s", node, c.url)
		}
		c.loseANode(at)
		c.down()
	})
}

func newTrialCluster(t *testing.T, user bool) *trialCluster {
	t.Helper()
	checkout, err := os.MkdirTemp("", "cove-cluster-") //nolint:usetesting // t.TempDir is root's alone
	if err != nil {
		t.Fatal(err)
	}
	c := &trialCluster{t: t, checkout: checkout, dir: filepath.Join(checkout, "c"), user: user}
	t.Cleanup(func() {
		if out, err := c.run("scripts/cluster.sh", "down", c.dir); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		_ = os.RemoveAll(checkout)
	})
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scripts", "deploy"} {
		if err := os.Symlink(program.Input(t, filepath.Join(here, name)), filepath.Join(checkout, name)); err != nil {
			t.Fatal(err)
		}
	}
	install(t, program.Cove(t), filepath.Join(checkout, "bin", "cove"))
	if user {
		for _, name := range []string{checkout, filepath.Join(checkout, "bin")} {
			if err := os.Chown(name, ordinary, ordinary); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.run("scripts/cluster.sh"); err != nil && strings.Contains(err.Error(), "permission denied") {
			t.Skipf("an ordinary user cannot read this checkout: %v", err)
		}
	}
	if out, err := c.run("bin/cove", "doctor", "--json"); err != nil || !doctored(t, out).Ready {
		providertest.Lacks(t, "local", fmt.Sprintf("no local sandboxes can be made here: %v\n%s", err, out))
	}
	return c
}

// install copies an executable to a path that every user can execute.
func install(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// run runs a program of the checkout, as the user of the cluster.
func (c *trialCluster) run(program string, args ...string) (string, error) {
	// Not with the test's context: what must be ended is ended after it.
	cmd := exec.Command(filepath.Join(c.checkout, program), args...)
	cmd.Dir = c.checkout
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.checkout, "COVE_HOME=" + filepath.Join(c.checkout, "home"), "COVE_NODE_LEASE_SEC=2",
		"COVE_URL=" + c.url, "COVE_API_KEY=" + c.key, "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"),
	}
	if c.user {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// up brings the cluster up, or what is missing of it.
func (c *trialCluster) up() {
	c.t.Helper()
	was := c.url
	c.url, c.key = "", "" // they are no settings of nodes
	out, err := c.run("scripts/cluster.sh", "up", c.dir)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if at, ok := strings.CutPrefix(line, "address "); ok {
			c.url = strings.TrimSpace(at)
		}
		if file, ok := strings.CutPrefix(line, "key file "); ok {
			c.key = strings.TrimSpace(readFile(c.t, strings.TrimSpace(file)))
		}
	}
	if c.url == "" || was != "" && c.url != was {
		c.t.Fatalf("the address was %q and is %q:\n%s", was, c.url, out)
	}
	if c.platform == nil {
		if c.platform, err = client.New(c.url, c.key); err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = c.platform.Close() })
	}
	if states := c.states(); len(states) != 3 || slices.ContainsFunc([]string{"n1", "n2", "n3"}, func(n string) bool { return states[n] != cove.NodeReady }) {
		c.t.Fatalf("the nodes are %v", states)
	}
}

// states is what cove node ls says.
func (c *trialCluster) states() map[string]cove.NodeState {
	c.t.Helper()
	out, err := c.run("bin/cove", "node", "ls", "--json")
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	states := map[string]cove.NodeState{}
	for line := range strings.Lines(out) {
		var n struct {
			ID    string `json:"node_id"`
			State cove.NodeState
		}
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			c.t.Fatalf("%v\n%s", err, out)
		}
		states[n.ID] = n.State
	}
	return states
}

// spread opens sessions until two nodes have some, and returns one of each.
func (c *trialCluster) spread() map[string]cove.ID {
	c.t.Helper()
	at := map[string]cove.ID{}
	for range 64 {
		s, err := c.platform.Sessions().Open(c.t.Context(), cove.OpenRequest{Spec: cove.Spec{Flavor: "small"}})
		if err != nil {
			c.t.Fatal(err)
		}
		if at[s.Node] = s.ID; len(at) == 2 {
			return at
		}
	}
	c.t.Fatalf("all sessions are on one node: %v", at)
	return nil
}

func (c *trialCluster) execThrough(id cove.ID) {
	c.t.Helper()
	x, err := c.platform.Processes(id).Exec(c.t.Context(), cove.ExecRequest{Line: "echo it runs"})
	if err != nil || string(x.Stdout.Data) != "it runs\n" {
		c.t.Fatalf("%+v %v", x, err)
	}
}

// ask sends a request to the one address, over a connection of its own.
func (c *trialCluster) ask(ctx context.Context, method, path, body string, header ...string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Authorization", "Bearer "+c.key)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// streamThrough wants to see what a program prints while it waits for what is done
// then: nothing on the way keeps it back.
func (c *trialCluster) streamThrough(id cove.ID) {
	c.t.Helper()
	body := `{"command":"echo before; until [ -e go ]; do sleep 0.05; done; echo after"}`
	resp := c.ask(c.t.Context(), http.MethodPost, "/api/sandboxes/"+string(id)+"/execute", body, "Content-Type", "application/json", "Accept", "text/event-stream")
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	wait := func(word string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), word) {
				return
			}
		}
		c.t.Fatalf("the stream ended before %q: %v", word, lines.Err())
	}
	wait("before")
	c.writeThrough(id, "go")
	wait("after")
}

func (c *trialCluster) writeThrough(id cove.ID, name string) {
	c.t.Helper()
	x, err := c.platform.Processes(id).Exec(c.t.Context(), cove.ExecRequest{Argv: []string{"touch", name}})
	if err != nil || x.ExitCode != 0 {
		c.t.Fatalf("%+v %v", x, err)
	}
}

// terminalThrough opens a terminal. What it prints is text in frames that are not
// masked.
func (c *trialCluster) terminalThrough(id cove.ID) {
	c.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(c.t.Context(), "tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(c.t.Context(), func() { _ = conn.Close() })()
	_, err = fmt.Fprintf(conn, "GET /api/sandboxes/%s/terminal?cols=80&rows=24&command=echo%%20its%%20$((40%%2B2)) HTTP/1.1\r\nHost: cove\r\nAuthorization: Bearer %s\r\n"+
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", id, c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if status, err := r.ReadString('\n'); err != nil || !strings.Contains(status, " 101 ") {
		c.t.Fatalf("a terminal is answered with %q %v", status, err)
	}
	var said []byte
	for !bytes.Contains(said, []byte("its 42")) {
		b, err := r.ReadByte()
		if err != nil {
			c.t.Fatalf("the terminal said %q: %v", said, err)
		}
		said = append(said, b)
	}
}

// loseANode kills one of the nodes under its session. The address goes on answering,
// and the session is away until it is lost.
func (c *trialCluster) loseANode(at map[string]cove.ID) {
	c.t.Helper()
	var dead, other string
	for node := range at {
		dead, other = other, node
	}
	pid := c.pid(dead)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	for runs(pid) { // what it was asked while it died may break off
		<-time.After(time.Millisecond)
	}
	for range 12 {
		resp := c.ask(c.t.Context(), http.MethodGet, "/api/sandboxes/"+string(at[other]), "")
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			c.t.Errorf("while %s is down, the address answers %s for a session of %s", dead, resp.Status, other)
		}
	}
	for c.lost(at[dead]) != cove.ReasonNodeLost {
		<-time.After(50 * time.Millisecond)
	}
	if out, err := c.run("scripts/cluster.sh", "status", c.dir); err == nil || !strings.Contains(out, "does not run") {
		c.t.Errorf("status says %v\n%s", err, out)
	}
	c.execThrough(at[other])
	c.up() // all three are there again
	if why := c.lost(at[dead]); why != cove.ReasonNodeLost {
		c.t.Errorf("a session that was lost is %q when its node is back", why)
	}
}

// lost asks for a session that must not answer, and returns the reason.
func (c *trialCluster) lost(id cove.ID) string {
	c.t.Helper()
	resp := c.ask(c.t.Context(), http.MethodGet, "/api/sandboxes/"+string(id), "")
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	var said struct{ Reason string }
	if err != nil || json.Unmarshal(data, &said) != nil {
		c.t.Fatalf("%s %v\n%s", resp.Status, err, data)
	}
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable && said.Reason == cove.ReasonNodeAway && resp.Header.Get("Retry-After") != "":
	case resp.StatusCode == http.StatusNotFound && said.Reason == cove.ReasonNodeLost:
	default:
		c.t.Fatalf("a session of a node that was killed answers %s\n%s", resp.Status, data)
	}
	return said.Reason
}

// pid is the process of a part of the cluster.
func (c *trialCluster) pid(part string) int {
	c.t.Helper()
	number, _, _ := strings.Cut(readFile(c.t, filepath.Join(c.dir, part+".pid")), " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		c.t.Fatal(err)
	}
	return pid
}

// runs reports whether a process has not ended, with all its threads.
func runs(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err == nil && (len(threads) > 1 || !strings.Contains(string(state), ") Z "))
}

// down ends it, under a session that lives, and wants nothing to be left.
func (c *trialCluster) down() {
	c.t.Helper()
	if out, err := c.run("scripts/cluster.sh", "down", c.checkout); err == nil || !strings.Contains(out, "is not a cluster's") {
		c.t.Errorf("a folder that is no cluster's is removed: %v %s", err, out)
	}
	var pids []int
	for _, part := range []string{"redis", "n1", "n2", "n3", "front"} {
		pids = append(pids, c.pid(part))
	}
	if before := c.remains(pids); len(before) < len(pids)+3 { // the folder, and keepers
		c.t.Fatalf("this test does not find what there is: %q", before)
	}
	for range 2 { // once more does no harm
		if out, err := c.run("scripts/cluster.sh", "down", c.dir); err != nil {
			c.t.Errorf("%v\n%s", err, out)
		}
	}
	if after := c.remains(pids); len(after) > 0 {
		c.t.Errorf("left: %q", after)
	}
}

// remains lists what there is of the cluster.
func (c *trialCluster) remains(pids []int) []string {
	found := remains(c.dir)
	for _, pid := range pids {
		if runs(pid) {
			found = append(found, fmt.Sprintf("process %d", pid))
		}
	}
	for _, node := range []string{"n1", "n2", "n3"} {
		sum := sha256.Sum256([]byte(filepath.Join(c.dir, node, "providers", "local")))
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/cove-" + hex.EncodeToString(sum[:6]))
		found = append(found, groups...)
	}
	return found
}
