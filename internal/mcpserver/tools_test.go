package mcpserver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/mcpserver"
)

func TestToolsOfASession(t *testing.T) {
	w := newWorld(t)
	c, end := stdio(t, mcpserver.Config{Version: "1.2.3"}, w.As(boss), nil)
	if i := c.InitializeResult(); i.ServerInfo.Name != "cove" || i.ServerInfo.Version != "1.2.3" || !strings.Contains(i.Instructions, "/workspace") {
		t.Errorf("the server says of itself %+v", i)
	}
	if got := c.call("get_sessions", nil); len(got.value["sessions"].([]any)) != 0 || got.value["current_session_id"] != nil {
		t.Errorf("before anything was done there is %s", got.text)
	}
	first := c.call("write_file", args{"path": "dir/a.txt", "content": "one\ntwo\n"})
	id, _ := first.value["session_id"].(string)
	if first.value["session_created"] != true || !cove.ID(id).Valid() || first.text != "wrote 8 bytes to /workspace/dir/a.txt" {
		t.Fatalf("the first call: %+v", first)
	}
	if got := c.call("execute_command", args{"command": "cat a.txt; echo no >&2; exit 3", "workdir": "dir"}); got.text != "one\ntwo\n[stderr]\nno\n[exit code 3]" ||
		got.failed || got.value["session_id"] != id || got.value["exit_code"] != 3.0 || got.value["outcome"] != "exited" || got.value["session_created"] != nil {
		t.Errorf("a command: %+v", got)
	}
	if got := c.call("execute_command", args{"command": "true"}); got.text != "(no output)" {
		t.Errorf("nothing to say: %+v", got)
	}
	c.call("execute_code", args{"language": "python", "code": "x = 6 * 7"})
	if got := c.call("execute_code", args{"language": "py", "code": "print(x, \"seen\")\nx + 1"}); got.text != "42 seen\n43" || got.value["success"] != true ||
		got.value["context_fresh"] != false || got.value["session_id"] != id {
		t.Errorf("code: %+v", got)
	}
	if got := c.call("execute_code", args{"language": "python", "code": "raise ValueError nope"}); got.failed || got.value["success"] != false ||
		!strings.Contains(got.text, "ValueError: nope") || got.value["raised"].(map[string]any)["name"] != "ValueError" {
		t.Errorf("code that fails: %+v", got)
	}
	if got := c.call("run_python_code", args{"code": "print(x)"}); got.text != "42" || got.value["result"] != "42" || got.value["session_id"] != id {
		t.Errorf("run_python_code: %+v", got)
	}
	if got := c.call("read_file", args{"path": "/workspace/dir/a.txt"}); got.text != "one\ntwo" || got.value["content"] != "one\ntwo\n" || got.value["next_offset"] != -1.0 {
		t.Errorf("read_file: %+v", got)
	}
	if got := c.call("list_files", args{"depth": 2}); len(got.value["entries"].([]any)) != 2 || !strings.Contains(got.text, `"/workspace/dir/a.txt"`) {
		t.Errorf("list_files: %+v", got)
	}
	if got := c.call("get_sessions", nil); got.value["current_session_id"] != id || len(got.value["sessions"].([]any)) != 1 {
		t.Errorf("get_sessions: %+v", got)
	}
	if got := c.call("get_volume_mappings", nil); got.text != `{"volumes":[],"truncated":false}` {
		t.Errorf("get_volume_mappings: %+v", got)
	}
	if got := c.call("get_resource_stats", nil); got.value["active_sessions"] != 1.0 || got.value["session"].(map[string]any)["session_id"] != id {
		t.Errorf("get_resource_stats: %+v", got)
	}
	if got := c.call("run_sql", args{"sql": "SELECT 1"}); got.value["status"] != "success" || got.failed {
		t.Errorf("run_sql: %+v", got)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if s, err := w.As(boss).Sessions().Get(t.Context(), cove.ID(id)); err != nil || s.State != cove.Stopped {
		t.Errorf("after its client the session is %+v, %v", s, err)
	}
}

// startedAgain is what a model reads where its sandbox had been stopped.
const startedAgain = "[The session had been stopped and was started again: its files are kept, variables and programs that ran are gone.]"

// TestEvictedSessionsComeBack: what the server stopped for room is there again for the next
// tool, and the next run says what is gone.
func TestEvictedSessionsComeBack(t *testing.T) {
	w := newWorld(t, func(c *engine.Config) { c.MaxSessions, c.Evict = 1, true })
	p := w.As(boss)
	c, _ := stdio(t, mcpserver.Config{}, p, nil)
	id := c.call("write_file", args{"path": "f", "content": "kept"}).value["session_id"].(string)
	evict := func() {
		t.Helper()
		other, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := p.Sessions().Get(t.Context(), cove.ID(id)); err != nil || s.State != cove.Stopped {
			t.Fatalf("the session is %+v, %v", s, err)
		}
		if _, err := p.Sessions().Close(t.Context(), other.ID, false); err != nil {
			t.Fatal(err)
		}
	}
	evict()
	if got := c.call("read_file", args{"path": "f"}); got.text != "kept" || got.value["session_id"] != id {
		t.Errorf("read_file: %+v", got)
	}
	for _, tool := range []struct {
		name string
		args args
		want string
	}{
		{"execute_command", args{"command": "cat f"}, "kept\n" + startedAgain},
		{"execute_code", args{"language": "python", "code": "x = 1"}, startedAgain},
		{"run_python_code", args{"code": "x = 1"}, "(no output)\n" + startedAgain},
	} {
		got := c.call(tool.name, tool.args)
		if got.text != tool.want || got.value["session_restarted"] != true || got.value["session_id"] != id {
			t.Errorf("%s: %+v", tool.name, got)
		}
		if got := c.call(tool.name, tool.args); strings.Contains(got.text, startedAgain) || got.value["session_restarted"] != nil {
			t.Errorf("%s says it twice: %+v", tool.name, got)
		}
		evict()
	}
}

func TestSessionsThatEnd(t *testing.T) {
	w := newWorld(t)
	p := w.As(boss)
	c, _ := stdio(t, mcpserver.Config{}, p, nil)
	id := c.call("write_file", args{"path": "f", "content": "kept"}).value["session_id"].(string)
	if got := c.call("stop_session", args{"session_id": id}); got.value["status"] != "stopped" || !strings.Contains(got.text, "its files are kept") {
		t.Errorf("stop_session: %+v", got)
	}
	if got := c.call("read_file", args{"path": "f"}); got.text != "kept\n"+startedAgain || got.value["content"] != "kept" || got.value["session_restarted"] != true || got.value["session_id"] != id || got.value["session_recreated"] != nil {
		t.Errorf("the own session starts again: %+v", got)
	}
	if _, err := p.Sessions().Close(t.Context(), cove.ID(id), false); err != nil {
		t.Fatal(err)
	}
	got := c.call("execute_command", args{"command": "ls"})
	second := got.value["session_id"].(string)
	if second == id || got.value["session_recreated"] != true || !strings.Contains(got.text, "this is a new one") {
		t.Errorf("after its session was closed: %+v", got)
	}
	c.fails(cove.NotFound, "execute_command", args{"command": "ls", "session_id": id})

	other, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sessions().Stop(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	if got := c.call("execute_command", args{"command": "echo there", "session_id": string(other.ID)}); got.text != "there\n"+startedAgain || got.value["session_id"] != string(other.ID) {
		t.Errorf("a named session that was stopped: %+v", got)
	}
	if got := c.call("get_resource_stats", args{"session_id": string(other.ID)}); got.value["session"].(map[string]any)["session_id"] != string(other.ID) {
		t.Errorf("stats of another: %+v", got)
	}

	third := c.call("execute_code", args{"language": "node", "code": "1", "template": "node"})
	if third.value["template"] != "node" || third.value["session_id"] == second {
		t.Errorf("another template: %+v", third)
	}
	if got := c.call("execute_command", args{"command": "true"}); got.value["session_id"] != third.value["session_id"] {
		t.Errorf("the one that was used last is not in use: %+v", got)
	}
	if got := c.call("execute_code", args{"language": "node", "code": "1", "template": "base"}); got.value["session_id"] == third.value["session_id"] {
		t.Errorf("base is not node: %+v", got)
	}
}

func TestANamedSessionForAll(t *testing.T) {
	w := newWorld(t)
	s, err := w.As(boss).Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	c, end := stdio(t, mcpserver.Config{Session: s.ID}, w.As(boss), nil)
	if got := c.call("execute_command", args{"command": "pwd"}); got.value["session_id"] != string(s.ID) {
		t.Errorf("%+v", got)
	}
	if got := c.call("get_sessions", nil); got.value["current_session_id"] != string(s.ID) {
		t.Errorf("%+v", got)
	}
	_ = end()
	if s, err := w.As(boss).Sessions().Get(t.Context(), s.ID); err != nil || s.State != cove.Running {
		t.Errorf("it is not ours to stop: %+v, %v", s, err)
	}
}

func TestWordsThatMakeNoSense(t *testing.T) {
	w := newWorld(t)
	c, _ := stdio(t, mcpserver.Config{}, w.As(boss), nil)
	for _, tc := range []struct {
		code cove.Code
		tool string
		args args
	}{
		{cove.Invalid, "execute_command", args{"command": "true", "session_id": "x"}},
		{cove.NotFound, "execute_command", args{"command": "true", "session_id": strings.Repeat("0", 26)}},
		{cove.Invalid, "execute_command", args{"command": ""}},
		{cove.Invalid, "execute_command", args{"command": "true", "timeout": -1}},
		{cove.Invalid, "execute_code", args{"language": "python", "code": "1", "timeout": 1e9}},
		{cove.Invalid, "run_python_code", args{"code": "1", "timeout": 1e9}},
		{cove.Invalid, "execute_code", args{"language": "cobol", "code": "1"}},
		{cove.Invalid, "execute_code", args{"language": "python", "code": "1", "template": "base", "session_id": strings.Repeat("0", 26)}},
		{cove.Invalid, "execute_code", args{"language": "python", "code": "1", "template": "nosuch"}},
		{cove.Invalid, "read_file", args{}},
		{cove.Invalid, "read_file", args{"path": "a", "output_id": "b"}},
		{cove.Invalid, "read_file", args{"path": "a", "offset": -1}},
		{cove.Invalid, "read_file", args{"path": "."}},
		{cove.NotFound, "read_file", args{"path": "nosuch"}},
		{cove.NotFound, "read_file", args{"output_id": "nosuch"}},
		{cove.Invalid, "write_file", args{"path": "", "content": ""}},
		{cove.Invalid, "write_file", args{"path": "f", "content": "%", "encoding": "base64"}},
		{cove.Invalid, "write_file", args{"path": "f", "content": "", "encoding": "rot13"}},
		{cove.NotFound, "list_files", args{"path": "nosuch"}},
		{cove.Invalid, "list_files", args{"depth": 1000}},
		{cove.Invalid, "stop_session", args{"session_id": "x"}},
		{cove.NotFound, "stop_session", args{"session_id": strings.Repeat("0", 26)}},
		{cove.NotFound, "get_resource_stats", args{"session_id": strings.Repeat("0", 26)}},
		{cove.Invalid, "get_resource_stats", args{"session_id": "x"}},
		{cove.Invalid, "run_sql", args{"sql": ""}},
	} {
		c.fails(tc.code, tc.tool, tc.args)
	}
	// What does not fit the schema never gets to a tool.
	for _, tc := range []struct {
		tool string
		args any
	}{
		{"execute_command", args{}},
		{"execute_command", args{"command": 7}},
		{"execute_command", args{"command": "true", "more": 1}},
		{"execute_code", args{"code": "1"}},
		{"stop_session", nil},
		{"get_sessions", args{"x": 1}},
	} {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tc.tool, Arguments: tc.args})
		if err != nil || !r.IsError {
			t.Errorf("%s %v: %+v, %v", tc.tool, tc.args, r, err)
		}
	}
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "rm_rf"}); err == nil || !strings.Contains(err.Error(), "rm_rf") {
		t.Errorf("an unknown tool: %v", err)
	}
	if got := c.call("get_sessions", nil); len(got.value["sessions"].([]any)) > 1 {
		t.Errorf("nonsense made sessions: %s", got.text)
	}
}

func TestOneSchemaForAllClients(t *testing.T) {
	w := newWorld(t)
	c, _ := stdio(t, mcpserver.Config{}, w.As(boss), nil)
	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
		if tool.Description == "" || tool.Title == "" || tool.Annotations == nil {
			t.Errorf("%s is not described", tool.Name)
		}
		for _, s := range []any{tool.InputSchema, tool.OutputSchema} {
			lookFor(t, tool.Name, s)
		}
	}
	slices.Sort(names)
	want := []string{
		"execute_code", "execute_command", "get_resource_stats", "get_sessions", "get_volume_mappings", "list_files",
		"read_file", "run_python_code", "run_sql", "stop_session", "write_file",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the tools are %v", names)
	}
}

// lookFor finds types that are lists: clients that know only one type refuse them.
func lookFor(t *testing.T, where string, s any) {
	t.Helper()
	m, ok := s.(map[string]any)
	if !ok {
		return
	}
	if _, list := m["type"].([]any); list {
		t.Errorf("%s: %v", where, m)
	}
	for k, v := range m {
		lookFor(t, where+"/"+k, v)
	}
}

// TestTenantDisk: a model whose tenant keeps too much reads what that is, and what to do.
func TestTenantDisk(t *testing.T) {
	w := newWorld(t, func(c *engine.Config) { c.TenantDisk = 128 * cove.KiB })
	c, _ := stdio(t, mcpserver.Config{}, w.As(boss), nil)
	p := w.As(boss)
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	for err == nil {
		_, err = p.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{})
	}
	got := c.fails(cove.Exhausted, "execute_command", args{"command": "true"})
	for _, want := range []string{"keeps", "may keep 128k", "snapshots ", "delete snapshots"} {
		if !strings.Contains(got.text, want) {
			t.Errorf("the text has no %q: %s", want, got.text)
		}
	}
}
