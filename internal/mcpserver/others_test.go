package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove/internal/mcpserver"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// node runs a program of the MCP project, and returns its exit code and output.
func node(t *testing.T, tool string, args ...string) (int, string, string) {
	t.Helper()
	dir, home := providertest.Needs(t, "sdks", "COVE_TEST_SDKS"), t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "node"), append([]string{filepath.Join(dir, "mcp", "node_modules", ".bin", tool)}, args...)...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "MCP_CATALOG_PATH="+filepath.Join(home, "mcp.json"), "NO_COLOR=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// everyTool is a call of each.
var everyTool = map[string][]string{
	"execute_code":        {"language=python", "code=6 * 7"},
	"execute_command":     {"command=echo hello"},
	"run_python_code":     {"code=6 * 7"},
	"write_file":          {"path=f", "content=x"},
	"list_files":          {"path=/workspace"},
	"get_sessions":        nil,
	"get_volume_mappings": nil,
	"get_resource_stats":  nil,
	"run_sql":             {"sql=SELECT 1"},
}

func TestInspectorOverHTTP(t *testing.T) {
	providertest.Needs(t, "sdks", "COVE_TEST_SDKS")
	world := newWorld(t)
	w := serve(t, mcpserver.Config{}, world.platform)
	inspect := func(args ...string) (int, string, string) {
		return node(t, "mcp-inspector", append([]string{"--cli", w.URL, "--transport", "http", "--header", "Authorization: Bearer boss"}, args...)...)
	}
	code, out, errs := inspect("--method", "tools/list", "--strict")
	var list struct {
		Tools []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list.Tools) != 11 {
		t.Fatalf("tools/list ended with %d, %v: %s%s", code, err, out, errs)
	}
	calls := maps.Clone(everyTool)
	c := w.connect("boss", nil)
	id := c.call("write_file", args{"path": "f", "content": "kept"}).value["session_id"].(string)
	calls["read_file"] = []string{"path=f", "session_id=" + id}
	calls["stop_session"] = []string{"session_id=" + id}
	var wg sync.WaitGroup
	turn := make(chan struct{}, 2)
	for _, tool := range list.Tools {
		args, ok := calls[tool.Name]
		if !ok {
			t.Errorf("nobody calls %s", tool.Name)
		}
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			words := []string{"--method", "tools/call", "--tool-name", tool.Name}
			for _, a := range args {
				words = append(words, "--tool-arg", a)
			}
			code, out, errs := inspect(words...)
			var r struct {
				IsError           bool
				StructuredContent map[string]any
			}
			if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil || r.IsError || r.StructuredContent == nil {
				t.Errorf("%s ended with %d, %v: %s%s", tool.Name, code, err, out, errs)
			}
		})
	}
	wg.Wait()
	if code, _, _ := node(t, "mcp-inspector", "--cli", w.URL, "--transport", "http", "--header", "Authorization: Bearer wrong", "--method", "tools/list"); code == 0 {
		t.Error("a wrong key opens")
	}
}

// TestConformance runs the scenarios of the MCP project's own tool. Those that ask
// for tools, prompts and resources of a server made for the test are in
// testdata/conformance.yaml with the reason; one of them that passes fails here.
func TestConformance(t *testing.T) {
	providertest.Needs(t, "sdks", "COVE_TEST_SDKS")
	world := newWorld(t)
	w := serve(t, mcpserver.Config{}, world.platform)
	open := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer boss") // the tool cannot show a key
		w.handler.ServeHTTP(rw, r)
	}))
	defer func() {
		_ = w.handler.Close(context.Background())
		open.CloseClientConnections()
		open.Close()
	}()
	expected, err := filepath.Abs(program.Input(t, "testdata/conformance.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := node(t, "conformance", "server", "--url", open.URL, "--spec-version", "2025-11-25", "--expected-failures", expected)
	if code != 0 {
		t.Errorf("it ended with %d:\n%s%s", code, out, errs)
	}
	for _, must := range []string{"server-initialize", "ping", "logging-set-level", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection"} {
		if !strings.Contains(out, fmt.Sprintf("✓ %s: ", must)) {
			t.Errorf("%s did not pass:\n%s", must, out)
		}
	}
}
