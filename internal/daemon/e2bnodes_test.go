package daemon_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// e2bAt sends what a client of E2B sends to a node.
func e2bAt(t *testing.T, n node, method, path, body string, headers ...string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, n.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// TestE2BAtEveryNode: the token of a sandbox, a watcher and a build are good at other
// nodes than the one that made them.
func TestE2BAtEveryNode(t *testing.T) {
	nodes, _ := cluster(t, 2)
	a, b := nodes[0], nodes[1]
	key := []string{"X-Api-Key", keyOf(t, a.Ready)}
	var made struct{ SandboxID, EnvdAccessToken string }
	if status, text := e2bAt(t, a, "POST", "/sandboxes", `{"templateID":"base"}`, key...); status != 201 || json.Unmarshal([]byte(text), &made) != nil {
		t.Fatalf("%d %s", status, text)
	}
	sandbox := []string{"E2b-Sandbox-Id", made.SandboxID, "E2b-Sandbox-Port", "49983", "X-Access-Token", made.EnvdAccessToken}
	files := func(n node, call, body string) (int, string) {
		return e2bAt(t, n, "POST", "/filesystem.Filesystem/"+call, body, sandbox...)
	}
	for _, n := range nodes {
		if status, text := files(n, "ListDir", `{"path":"/home/user"}`); status != 200 {
			t.Errorf("the token at %s: %d %s", n.URL, status, text)
		}
	}
	var watcher struct{ WatcherID string }
	if status, text := files(a, "CreateWatcher", `{"path":"/home/user"}`); status != 200 || json.Unmarshal([]byte(text), &watcher) != nil {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := files(b, "MakeDir", `{"path":"/home/user/made"}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	ask := `{"watcherId":"` + watcher.WatcherID + `"}`
	until(t, "what was made is told at another node", func() bool {
		status, text := files(b, "GetWatcherEvents", ask)
		if status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		return strings.Contains(text, `"made"`)
	})
	if status, text := e2bAt(t, b, "POST", "/filesystem.Filesystem/GetWatcherEvents", ask, append(sandbox[:4:4], "X-Access-Token", "wrong")...); status != 401 {
		t.Errorf("a wrong token: %d %s", status, text)
	}
	if status, text := files(b, "RemoveWatcher", ask); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	for _, n := range nodes {
		for _, id := range []string{ask, `{"watcherId":"x.y"}`, `{"watcherId":"x.0123456789abcdef"}`} {
			if status, text := files(n, "GetWatcherEvents", id); status != 404 {
				t.Errorf("%s is not there: %d %s", id, status, text)
			}
		}
	}

	var build struct{ TemplateID, BuildID string }
	if status, text := e2bAt(t, a, "POST", "/v3/templates", `{"name":"mine"}`, key...); status != 202 || json.Unmarshal([]byte(text), &build) != nil {
		t.Fatalf("%d %s", status, text)
	}
	at := "/templates/mine/builds/" + build.BuildID
	for _, n := range nodes {
		if status, text := e2bAt(t, n, "GET", at+"/status", "", key...); status != 200 || !strings.Contains(text, "waiting") {
			t.Errorf("the build at %s: %d %s", n.URL, status, text)
		}
	}
	if status, text := e2bAt(t, b, "POST", "/v2"+at, `{"steps":[{"type":"NOTHING"}]}`, key...); status != 400 {
		t.Errorf("a bad step: %d %s", status, text)
	}
	if status, _ := e2bAt(t, b, "GET", at+"/status", "", "X-Api-Key", "e2b_wrong"); status != 401 {
		t.Errorf("a wrong key: %d", status)
	}
	a.end()
	until(t, "a build ends with its node", func() bool {
		status, _ := e2bAt(t, b, "GET", at+"/status", "", key...)
		return status == 404
	})
}

// TestKeysOfATenantAbroad has a tenant of a region that nobody reaches: signing in and
// keys are of the cluster that is asked, and E2B's clients are told where to go.
func TestKeysOfATenantAbroad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("regions: {eu: {nodes: '127.0.0.1:1', tenants: [acme], metadata: {region: eu}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes, _ := cluster(t, 1, "COVE_CONFIG", file, "COVE_REGION", "us")
	_, secret, err := adminOf(t, nodes[0].Ready).Admin().CreateKey(t.Context(), cove.KeyRequest{Name: "a", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, nodes[0].URL, secret)
	if _, err := c.Links().Login(t.Context(), 0); err != nil {
		t.Errorf("a link to sign in: %v", err)
	}
	_, next, err := c.Admin().CreateKey(t.Context(), cove.KeyRequest{Name: "b", Scopes: []cove.Scope{cove.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	if status, text := e2bAt(t, nodes[0], "GET", "/api/whoami", "", "Authorization", "Bearer "+next); status != 200 {
		t.Errorf("the new key: %d %s", status, text)
	}
	for key, body := range map[string]string{secret: `{"templateID":"base"}`, keyOf(t, nodes[0].Ready): `{"templateID":"base","metadata":{"region":"eu"}}`} {
		if status, text := e2bAt(t, nodes[0], "POST", "/sandboxes", body, "X-Api-Key", key); status < 400 || !strings.Contains(text, "ask the address of region eu itself") {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
}
