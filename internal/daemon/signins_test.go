package daemon_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/store/redis/redistest"
)

// node is a server of a cluster.
type node struct {
	daemon.Ready

	end func()
}

// cluster runs some nodes that share a Redis.
func cluster(t *testing.T, n int, more ...string) (nodes []node, shared *redistest.Server) {
	t.Helper()
	shared = settled(t, "node0")
	for i := range n {
		r, end := serve(t, settings(t, append([]string{
			"REDIS_URL", shared.URL(), "COVE_CLUSTER_SECRET", strings.Repeat("s", 32), "COVE_NODE_ID", "node" + strconv.Itoa(i),
			"COVE_NODE_GRACE_SEC", "0", "COVE_NODE_LEASE_SEC", "5",
		}, more...)...), daemon.Options{})
		nodes = append(nodes, node{r, end})
	}
	return nodes, shared
}

// settled starts a Redis that a node of this name used before, with a short lease. The
// next nodes need not wait a lease for what others know.
func settled(t *testing.T, node string) *redistest.Server {
	t.Helper()
	shared := redistest.Start(t)
	<-time.After(redistest.Begin(t, shared.URL(), "", node))
	return shared
}

// until asks again and again, for as long as the test may take.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("never: %s", what)
		}
	}
}

// TestSignedInAtEveryNode: a link to sign in is good at any node and once in all, and
// so is the sign-in and its end.
func TestSignedInAtEveryNode(t *testing.T) {
	nodes, shared := cluster(t, 2)
	a, b := nodes[0], nodes[1]
	c := &http.Client{Jar: browser(t, "").Jar, Transport: &http.Transport{DisableKeepAlives: true}} // one host with two ports
	u, err := url.Parse(a.LoginURL)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"ticket": {u.Query().Get("ticket")}}.Encode()
	if status, page := fetch(t, c, "GET", b.URL+"/login?"+u.RawQuery, ""); status != 200 || !strings.Contains(page, "Sign in") {
		t.Fatalf("%d %s", status, page)
	}
	if status, page := fetch(t, c, "POST", b.URL+"/login", form); status != 200 {
		t.Fatalf("%d %s", status, page)
	}
	stranger := browser(t, hostOf(t, a.URL))
	if status, _ := fetch(t, stranger, "POST", a.URL+"/login", form); status != 401 {
		t.Errorf("the link is good at another node once more: %d", status)
	}
	whoami := func(n node) int {
		status, _ := fetch(t, c, "GET", n.URL+"/api/whoami", "")
		return status
	}
	for _, n := range nodes {
		if status := whoami(n); status != 200 {
			t.Errorf("signed in: %d at %s", status, n.URL)
		}
	}
	cookies := c.Jar.Cookies(u)
	if status, text := fetch(t, c, "POST", a.URL+"/logout", ""); status >= 300 {
		t.Fatalf("%d %s", status, text)
	}
	c.Jar.SetCookies(u, cookies) // as who stole it has it
	if status := whoami(a); status != 401 {
		t.Errorf("signed out here: %d", status)
	}
	until(t, "signed out there", func() bool { return whoami(b) == 401 })

	in := &http.Client{Jar: browser(t, "").Jar, Transport: &http.Transport{DisableKeepAlives: true}}
	l, err := adminOf(t, a.Ready).Links().Login(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := url.Parse(l.URL)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := fetch(t, in, "POST", b.URL+"/login", url.Values{"ticket": {again.Query().Get("ticket")}}.Encode()); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	shared.Stop()
	until(t, "nobody is signed in while nobody can be asked", func() bool {
		status, text := fetch(t, in, "GET", a.URL+"/api/whoami", "")
		return status == 503 && strings.Contains(text, "who is signed in")
	})
	shared.Restart(true)
}

// TestLinksAtEveryNode: what one node signed another one serves.
func TestLinksAtEveryNode(t *testing.T) {
	nodes, _ := cluster(t, 2)
	own := adminOf(t, nodes[0].Ready)
	id := open(t, own)
	if err := own.Files(id).Write(t.Context(), "a", strings.NewReader("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := own.Links().Download(t.Context(), cove.FileLink{Session: id, Path: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if status, text := fetch(t, browser(t, hostOf(t, n.URL)), "GET", l.URL, ""); status != 200 || text != "content" {
			t.Errorf("at %s: %d %s", n.URL, status, text)
		}
	}
}

// wandering sends each request to the next node.
type wandering struct {
	bearer

	nodes []node
	turn  *atomic.Int64
}

func (w wandering) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	at, err := url.Parse(w.nodes[int(w.turn.Add(1))%len(w.nodes)].URL)
	if err != nil {
		return nil, err
	}
	r.URL.Host = at.Host
	return w.bearer.RoundTrip(r)
}

// TestMCPSessionAtEveryNode: a client whose requests come to a node by chance has one
// MCP session, with one sandbox.
func TestMCPSessionAtEveryNode(t *testing.T) {
	nodes, _ := cluster(t, 3)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: nodes[0].URL + "/mcp", MaxRetries: -1,
		HTTPClient: &http.Client{Transport: wandering{bearer{keyOf(t, nodes[0].Ready)}, nodes, new(atomic.Int64)}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		got, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_command", Arguments: map[string]any{"command": "echo " + strconv.Itoa(i) + " >> f; cat f"}})
		if err != nil || got.IsError {
			t.Fatalf("%+v, %v", got, err)
		}
		if text := got.Content[0].(*mcp.TextContent).Text; strings.Count(text, "\n")+1 < i+1 || !strings.Contains(text, strconv.Itoa(i)) {
			t.Errorf("call %d answers %q", i, text)
		}
	}
	var list []*cove.Session
	for s, err := range adminOf(t, nodes[1].Ready).Sessions().List(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if len(list) != 1 {
		t.Errorf("the client has %d sandboxes", len(list))
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// mcpAt sends one message of an MCP client to a node.
func mcpAt(t *testing.T, n node, method, key, session, body string) mcpAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, n.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+key)
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return mcpAnswer{resp.StatusCode, resp.Header, resp.Body}
}

// mcpAnswer is what a node answered; its body ends with the test.
type mcpAnswer struct {
	StatusCode int
	Header     http.Header
	Body       io.Reader
}

const (
	mcpHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	mcpPing  = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
)

// TestMCPSessionOfAnotherNode: what another node has is asked there, of those only who
// may, and is over with it.
func TestMCPSessionOfAnotherNode(t *testing.T) {
	nodes, _ := cluster(t, 2)
	a, b := nodes[0], nodes[1]
	key := keyOf(t, a.Ready)
	_, other, err := adminOf(t, a.Ready).Admin().CreateKey(t.Context(), cove.KeyRequest{Scopes: []cove.Scope{cove.ScopeAll}})
	if err != nil {
		t.Fatal(err)
	}
	session := mcpAt(t, b, "POST", key, "", mcpHello).Header.Get("Mcp-Session-Id")
	if strings.Contains(session, "node1") || !strings.Contains(session, ".") {
		t.Fatalf("the session is %q", session)
	}
	status := func(n node, key, session string) int { return mcpAt(t, n, "POST", key, session, mcpPing).StatusCode }
	mark, _, _ := strings.Cut(session, ".")
	for what, tc := range map[string]struct {
		key, session string
		want         int
	}{
		"its own":               {key, session, 200},
		"another key":           {other, session, 403},
		"no key":                {"cove_wrong", session, 401},
		"of nobody":             {key, "0123456789abcdef.X", 404},
		"of that node, unknown": {key, mark + ".X", 404},
		"no mark":               {key, "X", 404},
		"hostile":               {key, "../../api/whoami.x.y", 404},
	} {
		if got := status(a, tc.key, tc.session); got != tc.want {
			t.Errorf("%s: %d, want %d", what, got, tc.want)
		}
	}
	// Events come as they are.
	stream := mcpAt(t, a, "GET", key, session, "")
	if stream.StatusCode != 200 || !strings.HasPrefix(stream.Header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("a stream at another node: %d %v", stream.StatusCode, stream.Header)
	}
	if got := mcpAt(t, a, "DELETE", key, session, "").StatusCode; got >= 300 {
		t.Errorf("ended at another node: %d", got)
	}
	_, _ = io.Copy(io.Discard, bufio.NewReader(stream.Body)) // it ends with the session
	if got := status(b, key, session); got != 404 {
		t.Errorf("ended elsewhere, it goes on: %d", got)
	}
	session = mcpAt(t, b, "POST", key, "", mcpHello).Header.Get("Mcp-Session-Id")
	if got := status(a, key, session); got != 200 {
		t.Fatalf("a second session: %d", got)
	}
	b.end()
	until(t, "a node that is gone has no sessions", func() bool {
		switch got := status(a, key, session); got {
		case 404:
			return true
		case 503: // until it is heard of
		default:
			t.Errorf("of a node that went: %d", got)
		}
		return false
	})
}
