package daemon_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/wire"
)

// Who says to be somebody is not believed, but at the door for nodes: with no key he is
// nobody, by the address and by the socket he is who he was.
func TestNobodyIsWhoHeSays(t *testing.T) {
	nodes, _ := cluster(t, 1)
	who, err := wire.EncodePrincipal(cove.Principal{Name: "x", Tenant: "victim", Scopes: []cove.Scope{cove.ScopeAll}})
	if err != nil {
		t.Fatal(err)
	}
	socket := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", nodes[0].Socket)
	}}}
	t.Cleanup(socket.CloseIdleConnections)
	for name, c := range map[string]struct {
		client *http.Client
		url    string
		want   int
	}{
		"by the address": {http.DefaultClient, nodes[0].URL, http.StatusUnauthorized},
		"by the socket":  {socket, "http://cove", http.StatusOK},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/api/tenants/victim", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(wire.PrincipalHeader, who)
		resp, err := c.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", name, resp.StatusCode, c.want)
		}
	}
}

// The door for nodes holds as many connections as the address does, and one remote may
// have all of them: a node is one.
func TestTooManyAtTheDoorForNodes(t *testing.T) {
	nodes, _ := cluster(t, 1, "COVE_CONNECTIONS", "3", "COVE_CONNECTIONS_PER_REMOTE", "1")
	c := dial(t, "unix://"+nodes[0].Socket, "")
	defer c.Close()
	list, err := c.Nodes().List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	for i := range 5 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", list[0].Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		wait := 100 * time.Millisecond
		if i >= 3 {
			wait = 5 * time.Second
		}
		if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
			t.Fatal(err)
		}
		_, err = conn.Read(make([]byte, 1))
		if open := errors.Is(err, os.ErrDeadlineExceeded); open != (i < 3) {
			t.Errorf("connection %d: %v", i+1, err)
		}
	}
}

// What cannot be a node is told why, in one sentence, and leaves nothing.
func TestNoNode(t *testing.T) {
	shared := settled(t, "a")
	secret := strings.Repeat("s", 32)
	running, end := serve(t, settings(t, "REDIS_URL", shared.URL(), "COVE_CLUSTER_SECRET", secret, "COVE_NODE_ID", "a", "COVE_NODE_LEASE_SEC", "5"), daemon.Options{})
	defer end()
	if running.URL == "" {
		t.Fatal("the first node does not run")
	}
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"no secret":      {[]string{"COVE_CLUSTER_SECRET", ""}, "COVE_CLUSTER_SECRET: is shorter than 32 characters"},
		"another secret": {[]string{"COVE_CLUSTER_SECRET", strings.Repeat("o", 32)}, "COVE_CLUSTER_SECRET: is another one"},
		"another lease":  {[]string{"COVE_NODE_LEASE_SEC", "7"}, "COVE_NODE_LEASE_SEC: is 7, and the nodes that share this Redis have 5"},
		"the same name":  {[]string{"COVE_NODE_ID", "a"}, "node"},
		"every address":  {[]string{"COVE_NODE_ADDR", "0.0.0.0:0"}, "COVE_NODE_ADDR: 0.0.0.0:0 is every address"},
		"nobody there":   {[]string{"REDIS_URL", "redis://127.0.0.1:1"}, "127.0.0.1:1 cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			env := append([]string{"REDIS_URL", shared.URL(), "COVE_CLUSTER_SECRET", secret, "COVE_NODE_ID", "b", "COVE_NODE_LEASE_SEC", "5"}, c.env...)
			err := daemon.Serve(t.Context(), settings(t, env...), daemon.Options{Logger: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(cove.MessageOf(err), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What listens inside a sandbox is shown by every node, whichever has it and made the
// link.
func TestPreviewAtEveryNode(t *testing.T) {
	nodes, _ := cluster(t, 3, "COVE_PREVIEW_DOMAIN", "preview.test", "COVE_PUBLIC_URL", "http://cove.test:8080")
	admin := adminOf(t, nodes[0].Ready)
	defer admin.Close()
	id := open(t, admin)
	p, err := admin.Processes(id).Start(t.Context(), cove.ExecRequest{Line: "serve 3000 hello"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := admin.Links().Port(t.Context(), cove.PortLink{Session: id, Port: 3000})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		c := browser(t, hostOf(t, n.URL))
		eventually(t, func() bool {
			status, text := fetch(t, c, "GET", l.URL, "")
			return status == http.StatusOK && text == "hello"
		})
	}
	if err := admin.Processes(id).Signal(t.Context(), p.PID, "KILL"); err != nil {
		t.Error(err)
	}
}
