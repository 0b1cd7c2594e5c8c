package tools_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	local.Main()
	os.Exit(m.Run())
}

// serve starts a server with real sandboxes and returns how to reach it.
func serve(t *testing.T) []string {
	t.Helper()
	at, key := daemontest.Serve(t, map[string]string{"SANDBOX_PROVIDER": "local", "POOL_SIZE": "0"})
	return []string{"COVE_URL=" + at.URL, "COVE_API_KEY=" + key}
}

// model answers requests by a script and remembers them.
type model struct {
	*httptest.Server

	mu    sync.Mutex
	asked []map[string]any // guarded by mu
}

func newModel(t *testing.T, path string, script func(turn int) any) *model {
	t.Helper()
	m := &model{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked map[string]any
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&asked); err != nil || r.URL.Path != path {
			http.Error(w, fmt.Sprintf("%s: %v", r.URL.Path, err), http.StatusNotFound)
			return
		}
		m.mu.Lock()
		m.asked = append(m.asked, asked)
		turn := len(m.asked)
		m.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(script(turn)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(m.Close)
	return m
}

// heard is all that it was asked, as JSON.
func (m *model) heard() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, _ := json.Marshal(m.asked)
	return string(text)
}

// agent is a copy of an agent in JavaScript, beside which the packages of others and
// our own are installed, the latter as npm publishes it.
func agent(t *testing.T, dir, name string) string {
	t.Helper()
	copied := t.TempDir()
	modules := filepath.Join(copied, "node_modules")
	ours := filepath.Join(modules, "cove-sandbox")
	if err := os.MkdirAll(ours, 0o700); err != nil {
		t.Fatal(err)
	}
	theirs, err := filepath.Glob(filepath.Join(dir, "tools-js", "node_modules", "*"))
	if err != nil || len(theirs) == 0 {
		t.Fatalf("there are no packages of others in %s: %v", dir, err)
	}
	for _, one := range theirs {
		if err := os.Symlink(one, filepath.Join(modules, filepath.Base(one))); err != nil {
			t.Fatal(err)
		}
	}
	run(t, nil, "tar", "-xzf", filepath.Join(providertest.Needs(t, "sdks", "COVE_TEST_TYPESCRIPT"), "cove-sandbox.tgz"), "-C", ours, "--strip-components=1")
	text, err := os.ReadFile(filepath.Join(name, "agent.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(copied, "agent.mjs")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s%s", program, args, err, out.String(), errs.String())
	}
	return out.String()
}

func TestAnthropic(t *testing.T) {
	dir := providertest.Needs(t, "sdks", "COVE_TEST_SDKS")
	use := func(n int, input map[string]any) any {
		return map[string]any{
			"id": fmt.Sprintf("msg_%d", n), "type": "message", "role": "assistant", "model": "scripted", "stop_reason": "tool_use", "usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
			"content": []any{map[string]any{"type": "tool_use", "id": fmt.Sprintf("tool_%d", n), "name": "bash", "input": input}},
		}
	}
	m := newModel(t, "/v1/messages", func(turn int) any {
		switch turn {
		case 1:
			return use(turn, map[string]any{"command": "mkdir -p d && cd d && x=41 && echo made"})
		case 2:
			return use(turn, map[string]any{"command": "pwd; echo $((x+1)) > f; ls /nosuch"})
		case 3:
			return use(turn, map[string]any{"restart": true})
		case 4:
			return use(turn, map[string]any{"command": "pwd; cat d/f; echo \"x is ${x-gone}\""})
		}
		return map[string]any{
			"id": "msg_end", "type": "message", "role": "assistant", "model": "scripted", "stop_reason": "end_turn", "usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
			"content": []any{map[string]any{"type": "text", "text": "It is 42."}},
		}
	})
	env := append(serve(t), "ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL="+m.URL)
	if got := run(t, env, filepath.Join(dir, "bin", "node"), agent(t, dir, "anthropic"), "add"); got != "It is 42.\n" {
		t.Errorf("the agent says %q", got)
	}
	for _, want := range []string{
		`"type":"bash_20250124"`, `"content":"made"`, `/workspace/d\nls: `, `[exit code 2]`, `"content":"The shell was started again. Files are still there."`, `"content":"/workspace\n42\nx is gone"`,
	} {
		if !strings.Contains(m.heard(), want) {
			t.Errorf("the model was not told %s: %s", want, m.heard())
		}
	}
}

func TestAISDK(t *testing.T) {
	dir := providertest.Needs(t, "sdks", "COVE_TEST_SDKS")
	answer := func(n int, reason string, message map[string]any) any {
		message["role"] = "assistant"
		return map[string]any{
			"id": fmt.Sprintf("chat_%d", n), "object": "chat.completion", "created": 1, "model": "scripted", "usage": map[string]int{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
			"choices": []any{map[string]any{"index": 0, "finish_reason": reason, "message": message}},
		}
	}
	calls := []struct{ name, arguments string }{
		{"write_file", `{"path": "data.csv", "content": "a,40\nb,2\n"}`},
		{"python", `{"code": "total = sum(int(line.split(',')[1]) for line in open('data.csv'))\ntotal"}`},
		{"bash", `{"command": "wc -l < data.csv; exit 3"}`},
		{"bash", `{"command": ["not", "a", "text"]}`},
		{"python", `{"code": "total / 0"}`},
	}
	m := newModel(t, "/v1/chat/completions", func(turn int) any {
		if turn > len(calls) {
			return answer(turn, "stop", map[string]any{"content": "It is 42."})
		}
		call := calls[turn-1]
		return answer(turn, "tool_calls", map[string]any{"content": nil, "tool_calls": []any{
			map[string]any{"id": fmt.Sprintf("call_%d", turn), "type": "function", "function": map[string]any{"name": call.name, "arguments": call.arguments}},
		}})
	})
	env := append(serve(t), "MODEL_URL="+m.URL+"/v1", "MODEL_KEY=none", "MODEL=scripted")
	if got := run(t, env, filepath.Join(dir, "bin", "node"), agent(t, dir, "ai"), "add"); got != "It is 42.\n" {
		t.Errorf("the agent says %q", got)
	}
	for _, want := range []string{
		`"name":"list_files"`, `"content":"wrote 9 bytes to data.csv"`, `"content":"42"`, `"content":"2\n[exit code 3]"`, `command: must be a text`, `ZeroDivisionError: division by zero"`,
	} {
		if !strings.Contains(m.heard(), want) {
			t.Errorf("the model was not told %s: %s", want, m.heard())
		}
	}
}

// TestAgentTypes has the compiler hold our tools to the types of those who take them.
func TestAgentTypes(t *testing.T) {
	dir, tree := providertest.Needs(t, "sdks", "COVE_TEST_SDKS"), providertest.Needs(t, "sdks", "COVE_TEST_TYPESCRIPT")
	args := []string{
		filepath.Join(tree, "node_modules", "typescript", "bin", "tsc"), "--allowJs", "--checkJs", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext",
		"--typeRoots", filepath.Join(tree, "node_modules", "@types"), "--types", "node", "--lib", "es2022,esnext.disposable,dom",
	}
	for _, name := range []string{"ai", "anthropic", "openai"} {
		args = append(args, agent(t, dir, name))
	}
	run(t, nil, filepath.Join(dir, "bin", "node"), args...)
}

func TestOpenAI(t *testing.T) {
	dir := providertest.Needs(t, "sdks", "COVE_TEST_SDKS")
	answer := func(n int, output ...any) any {
		return map[string]any{"id": fmt.Sprintf("resp_%d", n), "object": "response", "created_at": 1, "status": "completed", "model": "scripted", "output": output}
	}
	m := newModel(t, "/responses", func(turn int) any {
		call := map[string]any{"type": "shell_call", "id": fmt.Sprintf("sh_%d", turn), "call_id": fmt.Sprintf("call_%d", turn), "status": "completed"}
		switch turn {
		case 1:
			call["action"] = map[string]any{"commands": []string{"echo 42 > f", "cat f; exit 3"}, "max_output_length": 1000}
			return answer(turn, call)
		case 2:
			call["action"] = map[string]any{"commands": []string{"sleep 100"}, "timeout_ms": 500}
			return answer(turn, call)
		}
		return answer(turn, map[string]any{
			"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": "It is 42.", "annotations": []any{}}},
		})
	})
	env := append(serve(t), "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+m.URL)
	if got := run(t, env, filepath.Join(dir, "bin", "node"), agent(t, dir, "openai"), "add"); got != "It is 42.\n" {
		t.Errorf("the agent says %q", got)
	}
	for _, want := range []string{
		`"type":"shell_call_output"`, `"call_id":"call_1"`, `"call_id":"call_2"`, `"previous_response_id":"resp_2"`, `{"outcome":{"exit_code":3,"type":"exit"},"stderr":"","stdout":"42\n"}`, `{"outcome":{"type":"timeout"}`,
	} {
		if !strings.Contains(m.heard(), want) {
			t.Errorf("the model was not told %s: %s", want, m.heard())
		}
	}
}
