package cli_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRunPassesStreamsAndCodes(t *testing.T) {
	b := newBox(t)
	for _, tc := range []struct {
		args []string
		want said
	}{
		{[]string{"run", "--", "echo", "hi"}, said{0, "hi\n", ""}},
		{[]string{"run", "echo", "-n", "hi"}, said{0, "hi", ""}},
		{[]string{"run", "--", "cat"}, said{0, "typed", ""}},
		{[]string{"run", "--", "bash", "-c", "echo out; echo err >&2; exit 3"}, said{3, "out\n", "err\n"}},
		{[]string{"run", "--", "false"}, said{1, "", ""}},
		{[]string{"run", "--", "bash", "-c", "exit 126"}, said{126, "", ""}},
		{[]string{"run", "-w", "/tmp", "--", "pwd"}, said{0, "/tmp\n", ""}},
		{[]string{"run", "-e", "A=1", "-e", "FROM_HERE", "-e", "NOT_SET", "--", "bash", "-c", "echo $A $FROM_HERE $NOT_SET"}, said{0, "1 here\n", ""}},
	} {
		got := b.with("FROM_HERE", "here").input("typed").run(tc.args...)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(said{})); diff != "" {
			t.Errorf("%v: %s", tc.args, diff)
		}
	}
	b.fails(127, "nosuch", "run", "--", "nosuch")
	b.fails(124, "cove: the time ran out after", "run", "--timeout", "50ms", "--", "sleep", "60")
	b.fails(137, "", "run", "--", "bash", "-c", "kill -9 $$")
	b.fails(137, "cove: it wrote more than it may", "run", "--max-output", "1k", "--", "yes")
}

func TestRunLeavesNothingButItsJournal(t *testing.T) {
	b := newBox(t)
	b.ok("run", "--", "touch", "f")
	files, err := filepath.Glob(filepath.Join(b.home, "oneshot", "0", "providers", "*", "*"))
	if err != nil || len(files) > 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
	events := b.ok("audit", "ls")
	for _, kind := range []string{"session.open", "process.exec", "session.close"} {
		if strings.Count(events, kind) != 2 {
			t.Errorf("no intent and outcome of %s in\n%s", kind, events)
		}
	}
	if got := b.ok("audit", "verify"); got != "oneshot-0: 6 lines, all good\n" {
		t.Errorf("verify: %s", got)
	}
}

func TestRunSpeaksJSON(t *testing.T) {
	b := newBox(t)
	s := b.run("run", "--json", "--", "bash", "-c", "echo out; exit 3")
	var got struct {
		ExitCode int    `json:"exit_code"`
		Stdout   string `json:"stdout"`
		Outcome  string `json:"outcome"`
		Status   string `json:"status"`
	}
	if err := json.Unmarshal([]byte(s.out), &got); err != nil {
		t.Fatalf("%v in %s", err, s.out)
	}
	if s.code != 3 || s.err != "" || got.ExitCode != 3 || got.Stdout != "out\n" || got.Outcome != "exited" || got.Status != "error" {
		t.Errorf("%+v: %+v", s, got)
	}
}

func TestRunThatCannotBegin(t *testing.T) {
	b := newBox(t)
	for _, tc := range []struct {
		words string
		args  []string
	}{
		{"was given too few arguments", []string{"run"}},
		{"unknown flag: --nosuch", []string{"run", "--nosuch", "--", "true"}},
		{"--timeout: \"0\" is not a time above 0", []string{"run", "--timeout", "0", "--", "true"}},
		{"--timeout: \"-1\" is not a time above 0", []string{"run", "--timeout", "-1", "--", "true"}},
		{"--memory: \"lots\" is not a size above 0", []string{"run", "--memory", "lots", "--", "true"}},
		{"--cpus: \"0\" is not a number above 0", []string{"run", "--cpus", "0", "--", "true"}},
		{"--pids: \"x\" is not a whole number above 0", []string{"run", "--pids", "x", "--", "true"}},
		{"--max-output: \"0\" is not a size above 0", []string{"run", "--max-output", "0", "--", "true"}},
		{"--workspace-size: \"x\" is not a size above 0", []string{"run", "--workspace-size", "x", "--", "true"}},
		{"--volume: \"/a\" is not a volume", []string{"run", "-v", "/a", "--", "true"}},
		{"--env: \"=x\" has no name", []string{"run", "-e", "=x", "--", "true"}},
		{"network.mode: \"wide\" is unknown", []string{"run", "--network", "wide", "--", "true"}},
		{"network.allow: \"not a host\" is not a host name", []string{"run", "--allow-net", "not a host", "--", "true"}},
		{"--line: goes with one argument", []string{"run", "-c", "echo", "x"}},
		{"command: has no program name", []string{"run", "--", ""}},
		{"flavor: \"huge\" is unknown; use one of small, medium, large", []string{"run", "--flavor", "huge", "--", "true"}},
		{"provider: \"podman\" is unknown; use one of docker, e2b, fake, gvisor, local, microsandbox", []string{"run", "--provider", "podman", "--", "true"}},
		{"template: \"none\" is unknown to provider fake, or not ready there; it has base, python, node", []string{"run", "--template", "none", "--", "true"}},
		{"volumes: \"/etc\" is not below a path that the operator allows", []string{"run", "-v", "/etc:/data", "--", "true"}},
		{"policy: \"nobody\" is unknown; use one of agent-bash", []string{"run", "--policy", "nobody", "--", "true"}},
		{"require.isolation: microvm is wanted and provider fake gives none", []string{"run", "--require", "microvm", "--", "true"}},
	} {
		s := b.fails(125, tc.words, tc.args...)
		if s.out != "" {
			t.Errorf("%v wrote %q", tc.args, s.out)
		}
	}
	for name, value := range map[string]string{"REDIS_URL": "redis://r", "COVE_ARCHIVE_URL": "s3://bucket"} {
		b.with(name, value).ok("run", "--", "true") // what a run keeps ends with it, and no other node could ask for it
	}
}

func TestRunMountsWhatIsAllowed(t *testing.T) {
	b := newBox(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in", "f"), "from the host")
	b = b.with("COVE_VOLUMES", dir+":rw")
	if got := b.ok("run", "-v", dir+"/in:/data:ro", "--", "cat", "/data/f"); got != "from the host" {
		t.Errorf("got %q", got)
	}
	b.fails(1, "", "run", "-v", dir+"/in:/data:ro", "--", "bash", "-c", "echo x > /data/f")
	b.fails(1, "", "run", "-v", dir+"/in:/data", "--", "bash", "-c", "echo x > /data/f")
	b.with("COVE_VOLUMES", dir).fails(125, "may be read only", "run", "-v", dir+"/in:/data:rw", "--", "true")
	b.ok("run", "-v", dir+"/in:/data:rw", "--", "bash", "-c", "echo back > /data/f")
	if got := read(t, filepath.Join(dir, "in", "f")); got != "back\n" {
		t.Errorf("got %q", got)
	}
}

func TestRunThatIsInterruptedCleansUp(t *testing.T) {
	b := newBox(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	s := b.runContext(ctx, "run", "--", "sleep", "60")
	if s.code != 125 && s.code != 130 {
		t.Errorf("code %d: %s", s.code, s.err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.home, "oneshot", "0", "providers", "*", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(b.home, "oneshot", "0", "in-use")); len(left) > 0 {
		t.Error("the lane was not given back")
	}
}

func TestRunsAtOnceHaveLanesOfTheirOwn(t *testing.T) {
	b := newBox(t)
	done := make(chan said, 4)
	for range 4 {
		go func() { done <- b.run("run", "--", "bash", "-c", "sleep 0.2; echo ok") }()
	}
	for range 4 {
		if s := <-done; s.code != 0 || s.out != "ok\n" {
			t.Errorf("%+v", s)
		}
	}
	if got := b.ok("audit", "verify"); !strings.Contains(got, "all good") || strings.Count(got, "\n") < 2 {
		t.Errorf("verify: %s", got)
	}
}

func TestPolicies(t *testing.T) {
	b := newBox(t)
	agent := b.with("SANDBOX_COMMAND_POLICY", "agent-bash")
	if got := agent.ok("run", "-c", "echo a | cat"); got != "a\n" {
		t.Errorf("got %q", got)
	}
	agent.fails(126, "cove: blocked: ", "run", "-c", "echo a | rm x")
	b.fails(126, "rule ", "run", "--policy", "agent-bash", "--", "rm", "x")

	file := filepath.Join(t.TempDir(), "only-echo.yaml")
	write(t, file, "allow: [echo]\n")
	b.ok("run", "--policy", file, "--", "echo", "x")
	b.fails(126, "blocked", "run", "--policy", file, "--", "cat")
	write(t, file, "alow: [echo]\n")
	b.fails(125, "only-echo.alow: is not a setting", "run", "--policy", file, "--", "echo", "x")
	write(t, file, "allow: [/bin/echo]\n")
	b.fails(125, "policies.only-echo: policy.allow: profile only-echo", "run", "--policy", file, "--", "echo", "x")
}

func TestExplainRunsNothing(t *testing.T) {
	b := newBox(t)
	if got := b.ok("run", "--policy", "agent-bash", "--explain", "-c", "cat x"); !strings.Contains(got, "policy agent-bash: allow") {
		t.Errorf("got %s", got)
	}
	s := b.run("run", "--policy", "agent-bash", "--explain", "-c", "cat x | rm y")
	if s.code != 126 || !strings.Contains(s.out, "policy agent-bash: deny") || !strings.Contains(s.out, "rm") {
		t.Errorf("%+v", s)
	}
	s = b.run("run", "--json", "--policy", "agent-bash", "--explain", "--", "rm", "y")
	if s.code != 126 || !json.Valid([]byte(s.out)) {
		t.Errorf("%+v", s)
	}
	b.fails(125, "--policy: is not given", "run", "--explain", "--", "true")
	b.fails(125, `"nobody" is not a command policy`, "run", "--policy", "nobody", "--explain", "--", "true")
	b.fails(125, "--explain knows the policies of this machine only", "run", "--url", "http://x", "--policy", "agent-bash", "--explain", "--", "true")
	if left, _ := filepath.Glob(filepath.Join(b.home, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
