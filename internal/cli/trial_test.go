package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/wire"
)

func TestExecOnTrial(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	b.ok("sandbox", "exec", "-c", id, "echo old > f; echo x > gone; ln -s f link")
	const line = "echo newer > f; rm gone; mkdir d; echo 12 > d/new; ln -s d l; echo said"
	s := b.run("sandbox", "exec", "--trial", "-c", id, line)
	want := "A d/\nA d/new  3\nM f  6\nD gone\nA l -> d\ncove: 3 created, 1 modified, 1 removed, 9 bytes written; on trial: cove sandbox commit " +
		id + " keeps it, cove sandbox discard " + id + " takes it back\n"
	if s.code != 0 || s.out != "said\n" || s.err != want {
		t.Errorf("code %d, %q\n%s\nwant\n%s", s.code, s.out, s.err, want)
	}
	if got := b.ok("sandbox", "trial", id); got != want {
		t.Errorf("trial shows\n%s", got)
	}
	if got := b.ok("sandbox", "get", id); !strings.Contains(got, "trial           open\n") {
		t.Errorf("get shows\n%s", got)
	}
	b.fails(125, "on trial", "sandbox", "exec", "--trial", id, "true")
	b.fails(6, "commit or discard", "sandbox", "stop", id)
	if got := b.id("sandbox", "discard", id); got != id {
		t.Errorf("discard prints %q", got)
	}
	if got := b.ok("sandbox", "exec", "-c", id, "ls; cat f"); got != "f\ngone\nlink\nold\n" {
		t.Errorf("after the discard: %q", got)
	}
	b.fails(5, "no open trial", "sandbox", "commit", id)
	b.fails(5, "no open trial", "sandbox", "trial", id)

	if s := b.run("sandbox", "exec", "--trial", "--commit-on-success", "-c", id, "echo a >> f; exit 3"); s.code != 3 || !strings.HasSuffix(s.err, "; discarded\n") {
		t.Errorf("a failure: %+v", s)
	}
	if s := b.run("sandbox", "exec", "--trial", "--commit", "-c", id, "echo a >> f; exit 3"); s.code != 3 || !strings.HasSuffix(s.err, "; committed\n") {
		t.Errorf("a commit: %+v", s)
	}
	var got wire.Trial
	if err := json.Unmarshal([]byte(b.ok("--json", "sandbox", "exec", "--trial", "--discard", "-c", id, "echo b >> f")), &got); err != nil ||
		got.Modified != 1 || len(got.Changes) != 1 || got.Changes[0].Path != "/workspace/f" || got.Open || got.Execution == nil {
		t.Errorf("in JSON: %+v, %v", got, err)
	}
	if got := b.ok("sandbox", "exec", id, "cat", "f"); got != "old\na\n" {
		t.Errorf("in the end: %q", got)
	}
	if got := b.input("typed").run("sandbox", "exec", "--trial", id, "tee", "f"); got.code != 0 || got.out != "typed" {
		t.Errorf("with input: %+v", got)
	}
	if got := b.ok("--json", "sandbox", "commit", id); !strings.Contains(got, id) {
		t.Errorf("commit prints %q", got)
	}
}

func TestTrialFlagsThatDoNotGoTogether(t *testing.T) {
	b := served(t)
	for words, flags := range map[string]string{
		"--commit: goes only with --trial":   "--commit",
		"--commit-on-success: goes only":     "--commit-on-success",
		"--trial: ends in one way":           "--trial --commit --discard",
		"--trial: does not go with --detach": "--trial -d",
	} {
		args := append([]string{"sandbox", "exec"}, strings.Fields(flags)...)
		b.fails(125, words, append(args, nobody, "true")...)
	}
	b.fails(125, "no session", "sandbox", "exec", "--trial", nobody, "true")
	id := b.id("sandbox", "create", "--policy", "agent-bash")
	s := b.fails(126, "blocked", "sandbox", "exec", "--trial", "-c", id, "rm x")
	if strings.Contains(s.err, "created") {
		t.Errorf("a program that never ran changed something: %s", s.err)
	}
}
