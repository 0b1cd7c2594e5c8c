package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove/internal/cli"
)

func TestMCPOverStandardStreams(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--template", "node"}, ""},
		{[]string{"--session", id}, id},
	} {
		fromClient, toServer := io.Pipe()
		fromServer, toClient := io.Pipe()
		ended := make(chan int, 1)
		go func() {
			code := cli.Run(context.Background(), cli.System{Args: append([]string{"mcp"}, tc.args...), Stdin: fromClient, Stdout: toClient, Stderr: io.Discard, Env: b.lookup})
			_ = toClient.Close()
			ended <- code
		}()
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_command", Arguments: map[string]any{"command": "echo hello"}})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Session string `json:"session_id"`
			Stdout  string `json:"stdout"`
		}
		raw, _ := json.Marshal(r.StructuredContent)
		if err := json.Unmarshal(raw, &got); err != nil || got.Stdout != "hello\n" || tc.want != "" && got.Session != tc.want {
			t.Errorf("%v: %s, %v", tc.args, raw, err)
		}
		_ = toServer.Close()
		if code := <-ended; code != 0 {
			t.Errorf("%v: it ended with %d", tc.args, code)
		}
		_ = c.Close()
		state := b.ok("sandbox", "get", got.Session)
		if stopped := strings.Contains(state, "status          stopped"); stopped == (tc.want != "") {
			t.Errorf("%v: afterwards the session is\n%s", tc.args, state)
		}
	}
	b.input("this is no message\n").fails(2, "no message of the protocol", "mcp")
	b.fails(2, "--session: ", "mcp", "--session", "x")
	b.fails(2, "--template: ", "mcp", "--session", id, "--template", "node")
}

func TestMCPEntries(t *testing.T) {
	b := newBox(t)
	home, work := t.TempDir(), t.TempDir()
	t.Chdir(work)
	b = b.with("HOME", home)
	for client, want := range map[string]struct{ file, text string }{
		"claude-code": {filepath.Join(work, ".mcp.json"), `{
  "mcpServers": {
    "cove": {
      "type": "stdio",
      "command": "/usr/bin/cove",
      "args": [
        "mcp"
      ]
    }
  }
}
`},
		"claude-desktop": {filepath.Join(home, ".config/Claude/claude_desktop_config.json"), "{\n  \"mcpServers\": {\n    \"cove\": {\n      \"command\": \"/usr/bin/cove\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}\n"},
		"cursor":         {filepath.Join(home, ".cursor/mcp.json"), "{\n  \"mcpServers\": {\n    \"cove\": {\n      \"command\": \"/usr/bin/cove\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}\n"},
		"vscode":         {filepath.Join(work, ".vscode/mcp.json"), "{\n  \"servers\": {\n    \"cove\": {\n      \"type\": \"stdio\",\n      \"command\": \"/usr/bin/cove\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}\n"},
		"codex":          {filepath.Join(home, ".codex/config.toml"), "[mcp_servers.cove]\ncommand = \"/usr/bin/cove\"\nargs = [\"mcp\"]\n"},
		"gemini":         {filepath.Join(home, ".gemini/settings.json"), "{\n  \"mcpServers\": {\n    \"cove\": {\n      \"command\": \"/usr/bin/cove\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}\n"},
	} {
		args := []string{"mcp", "install", "--client", client, "--command", "/usr/bin/cove"}
		if got := b.ok(args...); got != "# for "+want.file+"\n"+want.text {
			t.Errorf("%s: %s", client, got)
		}
		if _, err := os.Stat(want.file); err == nil {
			t.Errorf("%s: it was written without being asked to", client)
		}
		for range 2 { // the second time changes nothing
			if got := b.ok(append(args, "--write")...); !strings.Contains(got, want.file) {
				t.Errorf("%s: %s", client, got)
			}
			if got, err := os.ReadFile(want.file); err != nil || string(got) != want.text {
				t.Errorf("%s: the file holds %s, %v", client, got, err)
			}
		}
		if _, err := os.Stat(want.file + ".bak"); err == nil {
			t.Errorf("%s: there was nothing to keep", client)
		}
	}
	if got := b.ok("--json", "mcp", "install", "--url", "http://host:1", "--home", "h"); !strings.Contains(got, `"args":["mcp","--home","`+filepath.Join(work, "h")+`","--url","http://host:1"]`) || !strings.Contains(got, "cli.test") {
		t.Errorf("the same server: %s", got)
	}
	b.fails(2, "--client: ", "mcp", "install", "--client", "emacs")
	b.fails(2, "--name: ", "mcp", "install", "--name", "a b")
	lost := newBox(t)
	lost.fails(2, "HOME is not set", "mcp", "install", "--client", "cursor", "--write")
}

func TestMCPFilesKeepWhatIsThere(t *testing.T) {
	b := newBox(t)
	home := t.TempDir()
	b = b.with("HOME", home, "XDG_CONFIG_HOME", filepath.Join(home, "xdg"))
	install := func(client string) []string {
		return []string{"mcp", "install", "--client", client, "--command", "cove", "--write"}
	}
	cursor := filepath.Join(home, ".cursor", "mcp.json")
	old := `{"z":1.50,"mcpServers":{"b":{"x":[]},"cove":{"command":"old"},"a":{}},"c":"<&>"}`
	real := filepath.Join(home, "dotfiles.json")
	write(t, real, old)
	if err := os.MkdirAll(filepath.Dir(cursor), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, cursor); err != nil {
		t.Fatal(err)
	}
	b.ok(install("cursor")...)
	got, _ := os.ReadFile(cursor)
	var flat strings.Builder
	for line := range strings.Lines(string(got)) {
		flat.WriteString(strings.TrimSpace(line))
	}
	if want := `{"z": 1.50,"mcpServers": {"b": {"x": []},"cove": {"command": "cove","args": ["mcp"]},"a": {}},"c": "<&>"}`; flat.String() != want {
		t.Errorf("the file holds\n%s", got)
	}
	if kept, err := os.ReadFile(real + ".bak"); err != nil || string(kept) != old {
		t.Errorf("what was there: %s, %v", kept, err)
	}
	if info, err := os.Lstat(cursor); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}

	gemini := filepath.Join(home, ".gemini", "settings.json")
	for _, text := range []string{"// mine\n{}", "[]", "{", `{"mcpServers": []}`, "null"} {
		write(t, gemini, text)
		b.fails(2, "put the entry there yourself", install("gemini")...)
		if got, _ := os.ReadFile(gemini); string(got) != text {
			t.Errorf("%q was changed to %q", text, got)
		}
	}
	write(t, gemini, strings.Repeat(" ", 5<<20))
	b.fails(2, "is larger than", install("gemini")...)
	write(t, gemini, "")
	b.ok(install("gemini")...)

	codex := filepath.Join(home, ".codex", "config.toml")
	write(t, codex, "model = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n")
	b.ok(install("codex")...)
	if got, _ := os.ReadFile(codex); string(got) != "model = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n\n[mcp_servers.cove]\ncommand = \"cove\"\nargs = [\"mcp\"]\n" {
		t.Errorf("codex: %s", got)
	}
	for _, text := range []string{"[mcp_servers.cove]\ncommand = \"other\"\n", "[ mcp_servers . \"cove\" ]\n", "mcp_servers = {}\n", "[mcp_servers]\ncove = { command = \"other\" }\n"} {
		write(t, codex, text)
		b.fails(6, "already", install("codex")...)
	}

	write(t, filepath.Join(home, "xdg"), "a file where a directory should be")
	b.fails(69, "cannot be read", install("claude-desktop")...)
	if err := os.Remove(filepath.Join(home, "xdg")); err != nil {
		t.Fatal(err)
	}
	b.ok(install("claude-desktop")...)
	if _, err := os.Stat(filepath.Join(home, "xdg", "Claude", "claude_desktop_config.json")); err != nil {
		t.Error(err)
	}
}
