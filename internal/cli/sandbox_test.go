package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// nobody is an id that nothing has.
const nobody = "00000000000000000000000000"

func TestLifeOfASandbox(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create", "--user", "ann", "--thread", "t1", "--project", "p", "--label", "a=b", "--idle", "1h", "--lifetime", "2h", "--port", "80", "--on-end", "close")
	if !cove.ID(id).Valid() {
		t.Fatalf("created %q", id)
	}
	if again := b.id("sbx", "create", "--user", "ann", "--thread", "t1"); again != id {
		t.Errorf("%s is another sandbox than %s", again, id)
	}
	b.fails(6, "", "sandbox", "create", "--user", "ann", "--thread", "t1", "--flavor", "large")

	b.ok("sandbox", "exec", id, "--", "bash", "-c", "echo kept > f")
	rows := strings.Split(b.ok("sandbox", "ls"), "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[0], "ID  ") || !strings.Contains(rows[1], id+"  running") || !strings.Contains(rows[1], "ann") {
		t.Errorf("ls: %q", rows)
	}
	if strings.Contains(rows[0], "\x1b") || strings.Index(rows[0], "STATUS") != strings.Index(rows[1], "running") {
		t.Errorf("not aligned, or colored:\n%s", strings.Join(rows, "\n"))
	}
	for _, f := range [][]string{
		{"--user", "nobody"}, {"--thread", "t2"}, {"--project", "q"}, {"--status", "stopped"}, {"--label", "a=c"},
	} {
		if got := b.ok(append([]string{"sandbox", "ls"}, f...)...); strings.Contains(got, id) {
			t.Errorf("%v does not select: %s", f, got)
		}
	}
	if got := b.ok("--json", "sandbox", "get", id); !strings.Contains(got, `"on_end":"close"`) {
		t.Errorf("get: %s", got)
	}
	if got := b.ok("sandbox", "get", id); !strings.Contains(got, "status          running\n") || !strings.Contains(got, "boundary        none\n") {
		t.Errorf("get: %s", got)
	}

	for _, step := range []struct{ verb, state string }{{"stop", "stopped"}, {"start", "running"}, {"pause", "paused"}, {"resume", "running"}} {
		var s struct {
			Status string `json:"status"`
		}
		if err := json.Unmarshal([]byte(b.ok("--json", "sandbox", step.verb, id)), &s); err != nil || s.Status != step.state {
			t.Errorf("%s: %s, %v", step.verb, s.Status, err)
		}
	}
	if got := b.ok("sandbox", "exec", id, "cat", "f"); got != "kept\n" {
		t.Errorf("after a stop the file holds %q", got)
	}

	copied := b.id("sandbox", "fork", "--user", "ben", "--label", "x=y", id)
	if got := b.ok("sandbox", "exec", copied, "cat", "f"); got != "kept\n" || copied == id {
		t.Errorf("the copy has %q", got)
	}
	shot := b.id("sandbox", "snapshot", "--name", "first", id)
	if got := b.ok("sandbox", "snapshot", "ls", "--sandbox", id); !strings.Contains(got, shot+"  first  "+id) {
		t.Errorf("snapshots: %s", got)
	}
	third := b.id("sandbox", "create", "--snapshot", shot)
	if got := b.ok("sandbox", "exec", third, "cat", "f"); got != "kept\n" {
		t.Errorf("from the snapshot: %q", got)
	}
	if got := b.id("sandbox", "snapshot", "rm", shot); got != shot {
		t.Errorf("removed %s", got)
	}
	kept := b.id("sandbox", "rm", "--keep", third)
	if got := b.ok("--json", "sandbox", "snapshot", "ls"); !strings.Contains(got, kept) || strings.Contains(got, shot) {
		t.Errorf("snapshots: %s", got)
	}
	if got := b.ok("sandbox", "rm", id, copied); got != id+"\n"+copied+"\n" {
		t.Errorf("rm: %s", got)
	}
	if got := b.ok("--json", "sandbox", "ls"); got != "" {
		t.Errorf("left: %s", got)
	}
}

func TestSandboxesThatAreNotThere(t *testing.T) {
	b := served(t)
	for _, args := range [][]string{
		{"sandbox", "get", nobody},
		{"sandbox", "stop", nobody},
		{"sandbox", "rm", nobody},
		{"sandbox", "stats", nobody},
		{"sandbox", "logs", nobody},
		{"sandbox", "ps", nobody},
		{"sandbox", "fork", nobody},
		{"sandbox", "snapshot", nobody},
		{"sandbox", "cp", nobody + ":f", "-"},
		{"sandbox", "cp", "-", nobody + ":f"},
	} {
		b.fails(5, "cove: ", args...)
	}
	b.fails(125, "cove: ", "sandbox", "exec", nobody, "true")
	b.fails(125, "cove: ", "sandbox", "attach", nobody)
	s := b.fails(5, "cove: ", "sandbox", "rm", nobody, strings.Repeat("1", 26))
	if strings.Count(s.err, "cove: ") != 2 {
		t.Errorf("not both are said: %s", s.err)
	}
}

// What is wrong with the words of a command is said before a server is started.
func TestWordsThatMakeNoSense(t *testing.T) {
	b := newBox(t)
	for _, tc := range []struct {
		code  int
		words string
		args  []string
	}{
		{2, `cove has no command "sandbx"`, []string{"sandbx"}},
		{2, "did you mean sandbox?", []string{"sandbx"}},
		{2, `cove sandbox has no command "frobnicate"`, []string{"sandbox", "frobnicate"}},
		{2, "takes no argument", []string{"sandbox", "ls", "x"}},
		{2, "too few arguments", []string{"sandbox", "get"}},
		{2, "too many arguments", []string{"sandbox", "get", nobody, nobody}},
		{2, "unknown flag: --x", []string{"sandbox", "ls", "--x"}},
		{2, `ID: "x" is not the id of a sandbox`, []string{"sandbox", "get", "x"}},
		{2, `ID: "x" is not the id of a key`, []string{"key", "revoke", "x"}},
		{2, `--label: "a" has no value`, []string{"sandbox", "create", "--label", "a"}},
		{2, `--label: "a" has no value`, []string{"sandbox", "ls", "--label", "a"}},
		{2, `--label: "a" has no value`, []string{"sandbox", "fork", "--label", "a", nobody}},
		{2, `on_end: "vanish" is unknown; use one of close, pause, stop`, []string{"sandbox", "create", "--on-end", "vanish"}},
		{2, `--idle: "0" is not a time above 0`, []string{"sandbox", "create", "--idle", "0"}},
		{2, `--lifetime: "-1" is not a time above 0`, []string{"sandbox", "create", "--lifetime", "-1"}},
		{2, "ports: 70000 is not a port", []string{"sandbox", "create", "--port", "70000"}},
		{2, `snapshot: "x" is not an id`, []string{"sandbox", "create", "--snapshot", "x"}},
		{2, `--memory: "x"`, []string{"sandbox", "create", "--memory", "x"}},
		{2, `ID: "x" is not`, []string{"sandbox", "snapshot", "ls", "--sandbox", "x"}},
		{2, "scopes: is empty", []string{"key", "create"}},
		{2, `scopes: "all" is unknown`, []string{"key", "create", "--scope", "all"}},
		{2, `--ttl: "soon"`, []string{"key", "create", "--scope", "exec", "--ttl", "soon"}},
		{2, "TARGET: is in a sandbox", []string{"sandbox", "cp", nobody + ":a", nobody + ":b"}},
		{2, "SOURCE: is on this machine", []string{"sandbox", "cp", "a", "b"}},
		{2, `ID: "x" is not`, []string{"audit", "ls", "--session", "x"}},
		{2, "--limit: -1 is negative", []string{"audit", "ls", "--limit", "-1"}},
		{125, `ID: "x" is not`, []string{"sandbox", "exec", "x", "true"}},
		{125, "too few", []string{"sandbox", "exec", nobody}},
		{125, "unknown flag", []string{"sandbox", "exec", "--x", nobody, "true"}},
		{125, "--line: goes with one argument", []string{"sandbox", "exec", "-c", nobody, "a", "b"}},
		{125, `--timeout: "0"`, []string{"sandbox", "exec", "--timeout", "0", nobody, "true"}},
		{125, "--env: ", []string{"sandbox", "exec", "-e", "=", nobody, "true"}},
		{125, "--pid: names a program that runs", []string{"sandbox", "attach", "--pid", "1", nobody, "--", "bash"}},
		{125, `--timeout: "0"`, []string{"sandbox", "code", "--timeout", "0", nobody, "1"}},
		{125, `--timeout: "x"`, []string{"code", "--timeout", "x", "1"}},
		{125, `--cpus: "x"`, []string{"code", "--cpus", "x", "1"}},
		{125, "language: is empty", []string{"code", "-l", "", "1"}},
	} {
		b.fails(tc.code, tc.words, tc.args...)
	}
}

func TestBackgroundPrograms(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	b.fails(5, "has no background program", "sandbox", "logs", id)
	pid := b.id("sandbox", "exec", "-d", id, "--", "bash", "-c", "echo one; sleep 600")
	if pid != "1" {
		t.Errorf("pid %s", pid)
	}
	second := b.id("sandbox", "exec", "-d", "-c", id, "echo two; echo oops >&2; exit 3")
	if got := b.run("sandbox", "logs", "-f", id); got.out != "two\n" || got.err != "oops\n" || got.code != 0 {
		t.Errorf("logs: %+v", got)
	}
	if got := b.ok("sandbox", "logs", id, pid); got != "one\n" {
		t.Errorf("logs of one that runs: %q", got)
	}
	ps := b.ok("sandbox", "ps", id)
	if !strings.Contains(ps, "1    running") || !strings.Contains(ps, "exited (3)") {
		t.Errorf("ps: %s", ps)
	}
	if got := b.ok("--json", "sandbox", "ps", id); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"pid":`+second) {
		t.Errorf("ps: %s", got)
	}
	b.fails(5, "has no background program 9", "sandbox", "logs", id, "9")
	b.fails(2, `PID: "x" is not the number`, "sandbox", "logs", id, "x")
	if got := b.ok("--json", "sandbox", "exec", "-d", id, "true"); !strings.Contains(got, `"pid":3`) {
		t.Errorf("start: %s", got)
	}
	guarded := b.id("sandbox", "create", "--policy", "agent-bash")
	b.fails(126, "blocked", "sandbox", "exec", "-d", guarded, "rm", "x")
	b.fails(126, "blocked", "sandbox", "attach", guarded, "--", "rm", "x")
}

func TestStats(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	if got := b.ok("sandbox", "stats", id); !strings.HasPrefix(got, "CPU  ") || strings.Count(got, "\n") != 2 {
		t.Errorf("stats of one: %s", got)
	}
	if got := b.ok("--json", "sandbox", "stats", id); !strings.Contains(got, `"memory_bytes":`) {
		t.Errorf("stats of one: %s", got)
	}
	if got := b.ok("sandbox", "stats"); !strings.HasPrefix(got, "SESSIONS  ") || !strings.Contains(got, "\n1 ") {
		t.Errorf("stats: %s", got)
	}
	if got := b.ok("--json", "sandbox", "stats"); !strings.Contains(got, `"active_sessions":1`) {
		t.Errorf("stats: %s", got)
	}
	limited := newBox(t).with("MSB_MAX_SESSIONS", "3")
	limited.serve(daemon.Options{Version: "dev"})
	if got := limited.ok("sandbox", "stats"); !strings.Contains(got, "\n0         3 ") {
		t.Errorf("stats with a bound: %s", got)
	}
}

func TestHostileNamesAreShownHarmlessly(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create", "--user", "\x1b[2J\u202eevil", "--label", "l=\x1b]0;title\a")
	for _, args := range [][]string{{"sandbox", "ls"}, {"sandbox", "get", id}, {"audit", "ls"}} {
		if got := b.ok(args...); strings.ContainsAny(got, "\x1b\a\u202e") {
			t.Errorf("%v: %q", args, got)
		}
	}
	b.ok("sandbox", "exec", "-d", id, "echo", "\x1b[31m")
	if got := b.ok("sandbox", "ps", id); strings.Contains(got, "\x1b") {
		t.Errorf("ps: %q", got)
	}
}

func TestSettingsOfTheCommandAreAskedFor(t *testing.T) {
	b := served(t)
	id := b.with("MSB_DEFAULT_FLAVOR", "large", "SANDBOX_COMMAND_POLICY", "agent-bash").id("sandbox", "create")
	got := b.ok("sandbox", "get", id)
	if !strings.Contains(got, "flavor          large\n") || !strings.Contains(got, "policy          agent-bash, soft\n") {
		t.Errorf("get: %s", got)
	}
	if other := b.ok("sandbox", "get", b.id("sandbox", "create")); !strings.Contains(other, "flavor          small\n") {
		t.Errorf("get: %s", other)
	}
}

func TestVersionOfTheServerIsSaid(t *testing.T) {
	b := newBox(t)
	b.serve(daemon.Options{Version: "v9"})
	s := b.run("sandbox", "ls")
	if s.code != 0 || !strings.Contains(s.err, "is version v9 and this is dev; stop it, and the next command starts the right one") {
		t.Errorf("%+v", s)
	}
}

func TestCode(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	if got := b.ok("code", "-l", "calc", "-s", id, "x = 41\nprint(\"hi\")\nx + 1"); got != "hi\n42\n" {
		t.Errorf("code in a session: %q", got)
	}
	if got := b.ok("sandbox", "code", "-l", "calc", id, "x"); got != "41\n" {
		t.Errorf("the variable is %q", got)
	}
	if got := b.input("6 * 7").ok("code", "-l", "calc", "-"); got != "42\n" {
		t.Errorf("code from standard input: %q", got)
	}
	s := b.fails(1, "Oops: it broke", "code", "-l", "calc", `raise Oops it broke`)
	if s.out != "" {
		t.Errorf("%+v", s)
	}
	b.fails(124, "the time ran out", "code", "-l", "calc", "--timeout", "100ms", "loop")
	var res struct {
		Success bool                `json:"success"`
		Results []map[string]string `json:"results"`
	}
	if err := json.Unmarshal([]byte(b.ok("--json", "code", "-l", "calc", "1 + 1")), &res); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]string{{"text": "2"}}, res.Results); diff != "" || !res.Success {
		t.Error(diff)
	}
	b.fails(125, "language: ", "code", "-l", "cobol", "1")
	b.fails(125, "", "code", "-s", nobody, "1")
	b.fails(5, "", "sandbox", "get", nobody)
}

func TestWaitingForRoom(t *testing.T) {
	b := newBox(t).with("MSB_MAX_SESSIONS", "1", "MSB_ENABLE_LRU_EVICTION", "false")
	b.serve(daemon.Options{Version: "dev"})
	id := b.id("sandbox", "create")
	b.fails(7, "cove: ", "sandbox", "create")
	waiting := make(chan said, 1)
	go func() { waiting <- b.run("sandbox", "create", "--wait") }()
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(b.ok("--json", "sandbox", "stats"), `"queued":1`) {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
	}
	b.ok("sandbox", "rm", id)
	if s := <-waiting; s.code != 0 || s.err != "" || !cove.ID(strings.TrimSpace(s.out)).Valid() {
		t.Errorf("%+v", s)
	}
}
