package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// TestLean compares the executable that is installed, a lean program with the
// whole one inside, with the whole one.
func TestLean(t *testing.T) {
	tier.Full(t, "TestLeanAround has no build.sh, and so no gVisor inside")
	program.Watch(t)
	installed := filepath.Join(t.TempDir(), "cove")
	if out, err := exec.CommandContext(t.Context(), "../../scripts/build.sh", installed).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := compareLean(t, installed)
	gvisor := []string{"run", "--provider", "gvisor", "--", "uname", "-r"}
	if got := run("cove", nil, gvisor...); !strings.Contains(got, "this build has no gVisor inside") {
		t.Errorf("a plain build says of gVisor: %s", got)
	}
	// Where make test could build it, make build can.
	if got := run(installed, nil, gvisor...); os.Getenv("COVE_TEST_RUNSC") != "" && !strings.HasPrefix(got, "4.19.0-gvisor") {
		t.Errorf("the executable that is installed says of gVisor: %s", got)
	}
}

// TestLeanAround compares a lean program around the executable of the test run with
// the whole one. It builds the lean program as scripts/build.sh does.
func TestLeanAround(t *testing.T) {
	agent := os.Getenv("COVE_TEST_AGENT")
	if agent == "" {
		t.Skip("COVE_TEST_AGENT names no agent")
	}
	program.Watch(t)
	dir := t.TempDir()
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(here, "internal/guest/agent.bin"): agent,
		filepath.Join(here, "cmd/cove/whole.bin"):       program.Cove(t),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	const module = "github.com/cove-sandbox/cove"
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-tags=embedagent,lean", "-overlay="+filepath.Join(dir, "overlay.json"),
		"-ldflags=-s -w -X "+module+"/internal/guest.imageID=of-a-test -X main.imageID=of-a-test", "-o", filepath.Join(dir, "cove"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compareLean(t, filepath.Join(dir, "cove"))
}

// runner runs a program in the home of a test and returns what it prints and how it ends.
type runner func(program string, env []string, args ...string) string

// compareLean compares what an installed program does with what the whole one does.
func compareLean(t *testing.T, installed string) runner {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	run := func(program string, env []string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), append([]string{"COVE_HOME=" + home}, env...)...)
		var stdout, stderr strings.Builder // apart: their order is not fixed
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // the code tells
		return strings.TrimSpace(stdout.String()+stderr.String()) + " " + cmd.ProcessState.String()
	}
	fake, local := []string{"SANDBOX_PROVIDER=fake"}, []string{"SANDBOX_PROVIDER=local"}
	for _, c := range []struct {
		env  []string
		args []string
	}{
		{nil, []string{}},
		{nil, []string{"--help"}},
		{nil, []string{"run", "--help"}},
		{nil, []string{"run"}},
		{nil, []string{"run", "--nonsense"}},
		{nil, []string{"run", "--timeout", "x", "true"}},
		{nil, []string{"run", "--memory", "lots", "true"}},
		{nil, []string{"run", "--template", "nonsense", "true"}},
		{nil, []string{"nonsense"}},
		{nil, []string{"--json", "run"}},
		{nil, []string{"run", "--policy", "agent-bash", "--explain", "-c", "rm x"}},
		{local, []string{"run", "--policy", "agent-bash", "-c", "rm x"}},
		{local, []string{"run", "--policy", "nonsense", "true"}},
		{append([]string{"SANDBOX_COMMAND_POLICY=agent-bash"}, local...), []string{"run", "--", "rm", "x"}},
		{append([]string{"SANDBOX_COMMAND_POLICY=nonsense"}, local...), []string{"run", "true"}},
		{[]string{"SANDBOX_PROVIDER=nonsense"}, []string{"run", "true"}},
		{[]string{"COVE_URL=http://127.0.0.1:1"}, []string{"run", "true"}},
		{fake, []string{"run", "--", "sh", "-c", "echo out; echo err >&2; exit 3"}},
		{local, []string{"run", "--", "sh", "-c", "echo out; echo err >&2; exit 3"}},
		{fake, []string{"run", "--provider", "nonsense", "true"}},
	} {
		want, got := run("cove", c.env, c.args...), run(installed, c.env, c.args...)
		if got != want {
			t.Errorf("%q is\n%s\nand in the whole program\n%s", c.args, got, want)
		}
	}
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	if run(installed, nil, "version"); !missing(home) {
		t.Error("a command that needs no COVE_HOME made one")
	}
	return run
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}
