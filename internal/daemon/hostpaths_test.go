package daemon_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// tenantOf makes a key that does all that a tenant can, and none of an operator.
func tenantOf(t *testing.T, at daemon.Ready) string {
	t.Helper()
	_, secret, err := dial(t, "unix://"+at.Socket, "").Admin().CreateKey(t.Context(), cove.KeyRequest{Name: "tenant", Scopes: []cove.Scope{
		cove.ScopeRead, cove.ScopeWrite, cove.ScopeExec, cove.ScopeFileRead, cove.ScopeFileWrite, cove.ScopeRuns,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestNoPathsOfTheHost breaks what a server keeps on disk, and reads all that a tenant is
// told of it.
func TestNoPathsOfTheHost(t *testing.T) {
	top := t.TempDir()
	home, datasets := filepath.Join(top, "home"), filepath.Join(top, "datasets")
	if err := os.Mkdir(datasets, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at, ended := start(ctx, t, []string{"COVE_HOME", home, "COVE_DATASETS", datasets}, daemon.Options{})
	key := tenantOf(t, at)
	failures := 0
	call := func(method, path, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, at.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		if strings.Contains(string(text), top) || strings.Contains(string(text), os.Args[0]) {
			t.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
		}
		if resp.StatusCode >= 500 {
			failures++
		}
		return string(text)
	}
	open := func() string {
		t.Helper()
		var s struct{ Session_id string } //nolint:revive // as it is in JSON
		if text := call("POST", "/api/sandboxes", `{}`); json.Unmarshal([]byte(text), &s) != nil || s.Session_id == "" {
			t.Fatalf("open: %s", text)
		}
		return "/api/sandboxes/" + s.Session_id
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// spoil puts a file where a directory was.
	spoil := func(name string) {
		t.Helper()
		must(os.RemoveAll(name))
		must(os.WriteFile(name, []byte("spoiled"), 0o644))
	}
	survey := func() {
		t.Helper()
		for _, path := range []string{
			"/health", "/ready", "/api/v1/health", "/api/doctor", "/api/templates", "/api/datasets", "/api/datasets/x/schema", "/api/runs", "/api/snapshots",
			"/api/named-volumes", "/api/events", "/api/events/verify", "/api/stats", "/api/sandboxes", "/api/whoami", "/",
		} {
			call("GET", path, "")
		}
	}
	stopped, lost, running, copied := open(), open(), open(), open()
	call("PUT", running+"/files?path=f", "text")
	call("POST", stopped+"/stop", "")
	call("POST", lost+"/stop", "")
	survey()

	entries, err := filepath.Glob(filepath.Join(home, "archives", "*"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("there are no archives: %v", err)
	}
	for _, name := range entries {
		must(os.RemoveAll(name))
	}
	call("POST", stopped+"/start", "")
	spoil(filepath.Join(home, "archives"))
	call("POST", lost+"/start", "")
	call("POST", running+"/stop", "")
	call("POST", copied+"/snapshot", `{"name":"s"}`)
	spoil(filepath.Join(home, "outputs"))
	call("POST", running+"/execute", `{"command":"seq 1 200000"}`)
	call("POST", running+"/processes", `{"command":"seq 1 200000"}`)
	spoil(filepath.Join(home, "volumes"))
	call("POST", "/api/named-volumes", `{"name":"data"}`)
	call("POST", "/api/sandboxes", `{"volumes":[{"name":"data","target":"/data"}]}`)
	call("POST", "/api/sandboxes", `{"volumes":[{"source":"/etc","target":"/data"}]}`)
	spoil(datasets)
	call("POST", "/api/runs", `{"query_type":"sql","query":"select 1","dataset":"x"}`)
	names, err := filepath.Glob(filepath.Join(home, "*"))
	must(err)
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.IsDir() && filepath.Base(name) != "journal" {
			spoil(name)
		}
	}
	call("POST", "/api/sandboxes", `{}`)
	call("POST", "/api/sandboxes", `{"template":"data"}`)
	for _, session := range []string{stopped, lost, running, copied} {
		call("POST", session+"/execute", `{"command":"echo hi"}`)
		call("GET", session+"/files?path=f", "")
		call("POST", session+"/start", "")
		call("POST", session+"/snapshot", `{}`)
		call("POST", session+"/fork", `{}`)
		call("DELETE", session+"?keep_workspace=true", "")
	}
	survey()
	must(os.RemoveAll(filepath.Join(home, "journal")))
	call("POST", "/api/sandboxes", `{}`)
	call("DELETE", running, "")
	survey()
	if failures < 10 {
		t.Errorf("%d calls failed: the test breaks less than it means to", failures)
	}
	cancel()
	<-ended
}
