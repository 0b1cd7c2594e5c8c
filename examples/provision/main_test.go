package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	inprocess.Main()
	os.Exit(m.Run())
}

// project is a folder with a test that fails when told to.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"test.sh":       "grep -q b data/in.txt && echo found > report.txt && echo all good",
		"data/in.txt":   "a\nb\n",
		"data/other.md": "nothing",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// environment sets this process up as the program's, with a provider.
func environment(t *testing.T, provider string) {
	t.Helper()
	if provider == "local" {
		l, err := local.New(local.Config{Dir: providertest.Dir(t)})
		if err != nil {
			t.Fatal(err)
		}
		providertest.Ready(t, l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("COVE_HOME", filepath.Join(t.TempDir(), "home"))
	t.Setenv("SANDBOX_PROVIDER", provider)
	t.Setenv("POOL_SIZE", "0")
}

func TestAgent(t *testing.T) {
	for _, provider := range []string{"fake", "local"} {
		t.Run(provider, func(t *testing.T) {
			environment(t, provider)
			dir := project(t)
			var out strings.Builder
			if err := run(t.Context(), []string{dir, "ls", "sh test.sh"}, &out); err != nil {
				t.Fatal(err)
			}
			if got, want := out.String(), "$ ls\ndata\ntest.sh\n$ sh test.sh\nall good\nreport: found\n\n"; got != want {
				t.Errorf("printed %q, want %q", got, want)
			}
			if _, err := os.Stat(filepath.Join(dir, "report.txt")); !os.IsNotExist(err) {
				t.Errorf("the project's own folder was touched: %v", err)
			}
		})
	}
}

func TestNothingIsLeft(t *testing.T) {
	environment(t, "fake")
	p, err := inprocess.Open(t.Context(), inprocess.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	var out strings.Builder
	if err := agent(t.Context(), p, project(t), []string{"exit 3", "echo not reached"}, &out); err != nil || !strings.Contains(out.String(), "exit code 3") || strings.Contains(out.String(), "not reached") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := agent(t.Context(), p, filepath.Join(t.TempDir(), "missing"), nil, &out); err == nil {
		t.Error("a project that is not there was copied")
	}
	if err := agent(t.Context(), p, project(t), []string{"true"}, &out); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("no report: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := agent(ctx, p, project(t), []string{"true"}, &out); err == nil {
		t.Error("an agent that was interrupted went on")
	}
	for s, err := range p.Sessions().List(t.Context(), cove.SessionFilter{}) {
		t.Errorf("left: %+v, %v", s, err)
	}
	if err := run(t.Context(), nil, &out); err == nil {
		t.Error("no folder was taken")
	}
	if err := run(t.Context(), []string{"x", "true"}, &out); cove.CodeOf(err) != cove.Conflict {
		t.Errorf("while another has the directory: %v", err)
	}
}
