package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestInspector lists and calls every tool with the inspector of the MCP project,
// which starts cove mcp as a client does.
func TestInspector(t *testing.T) {
	tier.Full(t, "internal/mcpserver runs the inspector over HTTP")
	dir := providertest.Needs(t, "sdks", "COVE_TEST_SDKS")
	b := served(t)
	id := b.id("sandbox", "create")
	b.ok("sandbox", "exec", id, "--", "bash", "-c", "echo kept > f")
	inspect := func(words ...string) (int, string) {
		home := t.TempDir()
		all := []string{filepath.Join(dir, "mcp", "node_modules", ".bin", "mcp-inspector"), "--cli", "--connect-timeout", "300000"} // machines are slow at times
		for name, value := range b.env {
			all = append(all, "-e", name+"="+value)
		}
		all = append(all, words...)
		all = append(all, "--", os.Args[0], "mcp")
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "node"), all...)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), "HOME="+home, "MCP_CATALOG_PATH="+filepath.Join(home, "mcp.json"))
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Errorf("%v: %v\n%s%s", words, err, out.String(), errs.String())
		}
		return cmd.ProcessState.ExitCode(), out.String()
	}
	code, out := inspect("--method", "tools/list", "--strict")
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list.Tools) != 11 {
		t.Fatalf("tools/list: %d, %v", code, err)
	}
	calls := map[string][]string{
		"execute_code":        {"language=calc", "code=6 * 7"},
		"execute_command":     {"command=echo hello"},
		"run_python_code":     {"code=6 * 7"},
		"read_file":           {"path=f", "session_id=" + id},
		"write_file":          {"path=f", "content=x"},
		"list_files":          {"path=/workspace"},
		"get_sessions":        nil,
		"stop_session":        {"session_id=" + b.id("sandbox", "create")},
		"get_volume_mappings": nil,
		"get_resource_stats":  nil,
		"run_sql":             {"sql=SELECT 1"},
	}
	var wg sync.WaitGroup
	turn := make(chan struct{}, 2)
	for _, tool := range list.Tools {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			words := []string{"--method", "tools/call", "--tool-name", tool.Name}
			for _, a := range calls[tool.Name] {
				words = append(words, "--tool-arg", a)
			}
			_, out := inspect(words...)
			var r struct {
				IsError           bool
				StructuredContent map[string]any
			}
			if err := json.Unmarshal([]byte(out), &r); err != nil || r.IsError || r.StructuredContent == nil {
				t.Errorf("%s: %v: %s", tool.Name, err, out)
			}
		})
	}
	wg.Wait()
}
