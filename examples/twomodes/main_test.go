package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	sandbox "github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	inprocess.Main() // the server of the tests makes sandboxes
	os.Exit(m.Run())
}

// TestTheSameInBothModes builds the program as it is, and with the one line
// changed, and compares what the two print.
func TestTheSameInBothModes(t *testing.T) {
	bin := t.TempDir()
	inside, over := build(t, bin, "local", nil), build(t, bin, "remote", changed(t))
	for _, provider := range []string{"fake", "local"} {
		t.Run(provider, func(t *testing.T) {
			if provider == "local" {
				p, err := sandbox.New(sandbox.Config{Dir: providertest.Dir(t)})
				if err != nil {
					t.Fatal(err)
				}
				providertest.Ready(t, p)
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
			}
			settings := []string{"SANDBOX_PROVIDER=" + provider, "POOL_SIZE=0"}
			first := play(t, inside, append(settings, "COVE_HOME="+filepath.Join(t.TempDir(), "home")))
			second := play(t, over, serve(t, settings))
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("local and remote mode (-local +remote):\n%s", diff)
			}
			if want := "here: in another session true, recreated true\n"; !strings.Contains(first, want) || !strings.HasSuffix(first, "session_closed\n") {
				t.Errorf("the program did not do all it should:\n%s", first)
			}
		})
	}
}

// changed returns the text of main.go with the one line changed.
func changed(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	const line = "p, err := local(ctx)"
	if strings.Count(string(text), line) != 1 {
		t.Fatalf("main.go does not have the line %q once", line)
	}
	return []byte(strings.Replace(string(text), line, "p, err := remote(ctx)", 1))
}

// build builds the program, with another text in the place of main.go.
func build(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	program := filepath.Join(dir, name)
	args := []string{"build", "-buildvcs=false", "-o", program}
	if mode := testing.CoverMode(); mode != "" {
		args = append(args, "-cover", "-covermode="+mode, "-coverpkg=./...")
	}
	if text != nil {
		here, err := filepath.Abs("main.go")
		if err != nil {
			t.Fatal(err)
		}
		there, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
		replace, err := json.Marshal(map[string]any{"Replace": map[string]string{here: there}})
		if err != nil {
			t.Fatal(err)
		}
		for path, data := range map[string][]byte{there: text, overlay: replace} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, "-overlay", overlay)
	}
	if out, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// play runs a program and returns what it prints.
func play(t *testing.T, program string, env []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), env...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, complaint.String())
	}
	return string(out)
}

// serve runs a server as cove serve does, and returns what a client must know.
func serve(t *testing.T, settings []string) []string {
	t.Helper()
	env := map[string]string{}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		env[name] = value
	}
	at, key := daemontest.Serve(t, env)
	t.Cleanup(func() { tidy(t, at.Socket) })
	return []string{"COVE_URL=" + at.URL, "COVE_API_KEY=" + key}
}

// tidy ends the session that expired: nobody would, without the server.
func tidy(t *testing.T, socket string) {
	t.Helper()
	c, err := client.New("unix://"+socket, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx := context.WithoutCancel(t.Context())
	if _, err := c.Admin().ControlTask(ctx, "expiry", cove.RunTask); err != nil {
		t.Error(err)
	}
	for s, err := range c.Sessions().List(ctx, cove.SessionFilter{}) {
		t.Errorf("the program left a session: %+v, %v", s, err)
	}
}

func TestRemoteNeedsAServer(t *testing.T) {
	t.Setenv("COVE_URL", "")
	if _, err := remote(t.Context()); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("without a URL: %v", err)
	}
}
