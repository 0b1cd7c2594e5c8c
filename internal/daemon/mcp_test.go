package daemon_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// bearer shows a key with every request.
type bearer struct{ key string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return http.DefaultTransport.RoundTrip(r)
}

func TestMCPAtTheServersAddress(t *testing.T) {
	r, end := serve(t, settings(t), daemon.Options{Version: "1"})
	admin := dial(t, r.URL, keyOf(t, r)).Admin()
	key, secret, err := admin.CreateKey(t.Context(), cove.KeyRequest{Scopes: []cove.Scope{cove.ScopeAll}})
	if err != nil {
		t.Fatal(err)
	}
	connect := func(secret string) (*mcp.ClientSession, error) {
		return mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: r.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer{secret}}, MaxRetries: -1,
		}, nil)
	}
	c, err := connect(secret)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_command", Arguments: map[string]any{"command": "echo hello"}})
	if err != nil || got.IsError || got.Content[0].(*mcp.TextContent).Text != "hello" {
		t.Fatalf("%+v, %v", got, err)
	}
	var verbs []string
	for e, err := range admin.Events(t.Context(), cove.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Principal == string(key.ID) {
			verbs = append(verbs, e.Kind)
		}
	}
	if !strings.Contains(strings.Join(verbs, " "), string(cove.ProcessExec)) {
		t.Errorf("the journal has %v", verbs)
	}
	if _, err := connect("cove_wrong"); err == nil {
		t.Error("a wrong key opens")
	}
	if err := admin.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_sessions"}); err == nil {
		t.Error("a revoked key goes on")
	}
	again, err := connect(keyOf(t, r))
	if err != nil {
		t.Fatal(err)
	}
	end() // with clients that are there
	_, _ = c.Close(), again.Close()
}
