package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLean compares the executable that is installed, a lean program with the
// whole one inside, with the whole one.
func TestLean(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds everything")
	}
	dir := t.TempDir()
	installed, home := filepath.Join(dir, "cove"), filepath.Join(dir, "home")
	if out, err := exec.CommandContext(t.Context(), "../../scripts/build.sh", installed).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(program string, env []string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), append([]string{"COVE_HOME=" + home}, env...)...)
		out, _ := cmd.CombinedOutput() // the code tells
		return strings.TrimSpace(string(out)) + " " + cmd.ProcessState.String()
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
		{fake, []string{"run", "--provider", "nonsense", "true"}},
	} {
		want, got := run("cove", c.env, c.args...), run(installed, c.env, c.args...)
		if got != want {
			t.Errorf("%q is\n%s\nand in the whole program\n%s", c.args, got, want)
		}
	}
	gvisor := []string{"run", "--provider", "gvisor", "--", "uname", "-r"}
	if got := run("cove", nil, gvisor...); !strings.Contains(got, "this build has no gVisor inside") {
		t.Errorf("a plain build says of gVisor: %s", got)
	}
	// Where make test could build it, make build can.
	if got := run(installed, nil, gvisor...); os.Getenv("COVE_TEST_RUNSC") != "" && !strings.HasPrefix(got, "4.19.0-gvisor") {
		t.Errorf("the executable that is installed says of gVisor: %s", got)
	}
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	if run(installed, nil, "version"); !missing(home) {
		t.Error("a command that needs no COVE_HOME made one")
	}
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}
