package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/cli"
	"github.com/cove-sandbox/cove/internal/daemon"
)

func serverOptions() daemon.Options { return daemon.Options{Version: "dev"} }

func TestKeys(t *testing.T) {
	b := served(t)
	secret := b.id("key", "create", "--name", "ci", "--tenant", "acme", "--scope", "exec,sandbox:write", "--scope", "sandbox:read", "--ttl", "48h", "--rate", "1000", "--sessions", "2")
	if !strings.HasPrefix(secret, "cove_") {
		t.Fatalf("secret %q", secret)
	}
	list := b.ok("key", "ls")
	for _, words := range []string{"ci", "acme", "exec,sandbox:write,sandbox:read", "good for 47h", "admin"} {
		if !strings.Contains(list, words) {
			t.Errorf("no %q in\n%s", words, list)
		}
	}
	if strings.Contains(list, secret) {
		t.Error("the list shows the secret")
	}
	var made struct {
		KeyID  string `json:"key_id"`
		Secret string `json:"secret"`
	}
	if err := json.Unmarshal([]byte(b.ok("--json", "key", "create", "--scope", "*")), &made); err != nil || made.Secret == "" {
		t.Fatal(err)
	}
	remote := b.with("COVE_URL", b.ready.URL, "COVE_API_KEY", made.Secret)
	remote.ok("sandbox", "ls")
	if got := b.id("key", "revoke", made.KeyID); got != made.KeyID {
		t.Errorf("revoked %s", got)
	}
	remote.fails(3, "no valid key was shown", "sandbox", "ls")
	if got := b.ok("key", "ls"); !strings.Contains(got, "revoked") {
		t.Errorf("list: %s", got)
	}
	if got := b.ok("--json", "key", "ls"); strings.Count(got, "\n") != 3 {
		t.Errorf("list: %s", got)
	}
	b.fails(5, "", "key", "revoke", nobody)
	if got := b.id("key", "create", "--e2b", "--scope", "*"); !strings.HasPrefix(got, "e2b_") || len(got) != 44 {
		t.Errorf("a key of E2B's form is %q", got)
	}
	bound := b.id("key", "create", "--msb", "--namespace", "team1", "--scope", "*")
	if !strings.HasPrefix(bound, "msb_") {
		t.Errorf("a key of microsandbox's form is %q", bound)
	}
	b.with("COVE_URL", b.ready.URL, "COVE_API_KEY", bound).fails(4, "the namespace team1", "sandbox", "ls")
	b.fails(2, "only a key of form msb", "key", "create", "--namespace", "team1", "--scope", "*")
}

func TestRemoteCommands(t *testing.T) {
	b := served(t)
	key := strings.TrimSpace(read(t, b.ready.KeyFile))
	away := newBox(t).with("SANDBOX_PROVIDER", "")
	away.fails(3, "no valid key", "--url", b.ready.URL, "sandbox", "ls", "--user", "x")
	away = away.with("COVE_API_KEY", key)
	if got := away.ok("run", "--url", b.ready.URL, "--", "echo", "far"); got != "far\n" {
		t.Errorf("run: %q", got)
	}
	s := away.with("SANDBOX_MODE", "remote", "SANDBOX_URL", b.ready.URL).input("typed").run("run", "--", "bash", "-c", "cat; exit 4")
	if s.code != 4 || s.out != "typed" {
		t.Errorf("%+v", s)
	}
	if got := away.ok("code", "--url", b.ready.URL, "-l", "calc", "1 + 1"); got != "2\n" {
		t.Errorf("code: %q", got)
	}
	if got := away.ok("doctor", "--url", b.ready.URL); !strings.Contains(got, "fake (default)") {
		t.Errorf("doctor: %s", got)
	}
	if got := away.ok("audit", "ls", "--url", b.ready.URL, "--kind", "process.exec"); strings.Count(got, "process.exec") != 4 {
		t.Errorf("audit: %s", got)
	}
	away.fails(8, "verified where its files are", "audit", "verify", "--url", b.ready.URL)
	if _, err := os.Stat(away.home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a remote command made %s", away.home)
	}
	away.fails(125, "cannot be reached", "run", "--url", "http://127.0.0.1:1", "--", "true")
	away.fails(69, "cannot be reached", "doctor", "--url", "http://127.0.0.1:1")
	away.fails(2, "--url: ", "sandbox", "ls", "--url", "nonsense")
	away.fails(2, "url: must be", "sandbox", "ls", "--url", "http://user@host")
	away.fails(2, "url: must be", "doctor", "--url", "http://user@host")
	away.fails(2, "url: must be", "audit", "ls", "--url", "http://user@host")
	away.fails(125, "url: must be", "run", "--url", "http://user@host", "true")
}

func TestAuditOfAServer(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	b.ok("run", "--", "true")
	b.ok("sandbox", "rm", id)
	all := b.ok("audit", "ls")
	if !strings.Contains(all, "  main ") || !strings.Contains(all, "  oneshot-0 ") {
		t.Errorf("ls: %s", all)
	}
	for _, tc := range []struct {
		args []string
		n    int
	}{
		{[]string{"--session", id}, 3},
		{[]string{"--kind", "session.", "--session", id}, 3},
		{[]string{"--kind", "session.close"}, 4},
		{[]string{"--limit", "2"}, 2},
	} {
		if got := b.ok(append([]string{"audit", "ls"}, tc.args...)...); strings.Count(got, "\n") != tc.n {
			t.Errorf("%v: want %d lines\n%s", tc.args, tc.n, got)
		}
	}
	for line := range strings.Lines(b.ok("audit", "ls", "--json")) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil || e["journal"] == "" || e["kind"] == "" {
			t.Errorf("%v: %s", err, line)
		}
	}
	if got := b.ok("audit", "verify"); strings.Count(got, "all good") != 2 {
		t.Errorf("verify: %s", got)
	}
}

func TestAuditFollows(t *testing.T) {
	b := served(t)
	r, w := net.Pipe()
	d := newDisplay(r)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, cli.System{Args: []string{"audit", "ls", "-f", "--json"}, Stdin: strings.NewReader(""), Stdout: w, Stderr: w, Env: b.lookup})
		_ = w.Close()
	}()
	id := b.id("sandbox", "create")
	d.await(t, id)
	cancel()
	<-ended
	newBox(t).fails(69, "nobody serves", "audit", "ls", "-f")
}

func TestTamperedJournalIsFound(t *testing.T) {
	b := newBox(t)
	b.ok("run", "--", "true")
	path := filepath.Join(b.home, "oneshot", "0", "journal", "journal-00000001.jsonl")
	text := read(t, path)
	write(t, path, strings.Replace(text, "session.open", "session.OPEN", 1))
	s := b.run("audit", "verify")
	if s.code != 1 || !strings.HasPrefix(s.out, "oneshot-0: segment 1, line 1: changed") || s.err != "" {
		t.Errorf("%+v", s)
	}
	if s := b.run("--json", "audit", "verify"); s.code != 1 || !strings.Contains(s.out, `"problems":["segment 1, line 1`) {
		t.Errorf("%+v", s)
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if s := b.run("audit", "verify"); s.code != 1 || !strings.Contains(s.out, "missing: the journal was removed") {
		t.Errorf("%+v", s)
	}
	write(t, filepath.Join(b.home, "oneshot", "0", "journal", "x"), "")
	if err := os.Remove(filepath.Join(b.home, "oneshot", "0", "journal.key")); err != nil {
		t.Fatal(err)
	}
	b.fails(125, "journal", "run", "--", "echo", "must not run")
	if got := newBox(t).ok("audit", "verify"); got != "" {
		t.Errorf("without a journal: %q", got)
	}
}

func TestDoctor(t *testing.T) {
	b := newBox(t)
	if got := b.ok("doctor"); !strings.Contains(got, "PROVIDER") || !regexp.MustCompile(`(?m)^fake \(default\) +yes +none +hard`).MatchString(got) || !regexp.MustCompile(`(?m)^local +(yes|no) +namespaces +`).MatchString(got) {
		t.Errorf("doctor: %s", got)
	}
	if got := b.ok("doctor"); !strings.Contains(got, "\nfake has the templates base, python, node\n") {
		t.Errorf("doctor does not name templates: %s", got)
	}
	if got := b.ok("--json", "doctor"); !strings.Contains(got, `"name":"fake","default":true`) {
		t.Errorf("doctor: %s", got)
	}
	if _, err := os.Stat(b.home); !errors.Is(err, os.ErrNotExist) {
		t.Error("doctor made COVE_HOME")
	}
}

func TestServe(t *testing.T) {
	b := newBox(t)
	r, w := net.Pipe()
	d := newDisplay(r)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, cli.System{Args: []string{"serve"}, Stdin: strings.NewReader(""), Stdout: w, Stderr: w, Env: b.lookup})
		_ = w.Close()
	}()
	d.await(t, "key      "+filepath.Join(b.home, "admin.key"))
	d.await(t, "address  http://127.0.0.1:")
	d.await(t, "sign in  cove login-link makes a link") // a link itself would be in a log
	s := b.fails(6, "is served by process", "serve")
	if !strings.Contains(s.err, "http://127.0.0.1:") || !strings.Contains(s.err, "COVE_HOME") {
		t.Errorf("who holds it is not said: %s", s.err)
	}
	if info, err := os.Stat(filepath.Join(b.home, "admin.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info, err)
	}
	b.ok("sandbox", "ls")
	cancel()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the server does not end")
	}
	if _, err := os.Stat(filepath.Join(b.home, "cove.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the socket is still there")
	}
}

// TestServeAtATerminal: who looks at it may sign in.
func TestServeAtATerminal(t *testing.T) {
	b := newBox(t)
	keys, screen := terminals(t)
	d := newDisplay(keys)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, cli.System{Args: []string{"serve"}, Stdin: strings.NewReader(""), Stdout: screen, Stderr: io.Discard, Env: b.lookup})
	}()
	d.await(t, "/login?ticket=")
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestServeThatCannotBegin(t *testing.T) {
	b := newBox(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	b.fails(2, "is in use by another program", "serve", "--addr", l.Addr().String())
	b.fails(2, "cannot be listened on", "serve", "--addr", "192.0.2.1:1")
	b.fails(2, `--addr: "x" is not an address and port`, "serve", "--addr", "x")
	b.fails(2, `--provider: "podman" is unknown; use docker, e2b, fake, gvisor, local or microsandbox`, "serve", "--provider", "podman")
	b.fails(2, `--log-level: "loud" is unknown`, "serve", "--log-level", "loud")
	b.with("COVE_HOME", "/dev/null").fails(2, "COVE_HOME: /dev/null is not a directory", "serve")
	for _, name := range []string{"cove.db", "journal", "admin.key"} {
		if _, err := os.Stat(filepath.Join(b.home, name)); err == nil {
			t.Errorf("%s was begun", name)
		}
	}
}

func TestPrintConfig(t *testing.T) {
	b := newBox(t).with("COVE_API_KEY", "topsecret")
	text := b.ok("serve", "--print-config", "--addr", "127.0.0.1:9")
	for _, words := range []string{
		"provider: fake  # env SANDBOX_PROVIDER", "  addr: 127.0.0.1:9  # flag --addr", `  api_key: "********"  # env COVE_API_KEY`, "  idle_timeout: 30m  # default",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("no %q in\n%s", words, text)
		}
	}
	if got := b.ok("--json", "serve", "--print-config"); strings.Contains(got, "topsecret") || !json.Valid([]byte(got)) {
		t.Errorf("json: %s", got)
	}
	if _, err := os.Stat(b.home); !errors.Is(err, os.ErrNotExist) {
		t.Error("--print-config made COVE_HOME")
	}
}

func TestServerThatCannotBeStarted(t *testing.T) {
	b := newBox(t)
	s := b.fails(69, "the server ended while it was starting: no server in a test; run it yourself", "sandbox", "ls")
	if !strings.Contains(s.err, filepath.Join(b.home, "daemon.log")) {
		t.Errorf("the log is not named: %s", s.err)
	}
	b.with("COVE_HOME", "/dev/null/x").fails(69, "COVE_HOME: ", "sandbox", "ls")
	b.with("MSB_CPUS", "many").fails(2, "MSB_CPUS: ", "sandbox", "ls")
}

func TestErrorsForPrograms(t *testing.T) {
	b := newBox(t)
	s := b.run("--json", "run", "--flavor", "huge", "--", "true")
	want := `{"code":"invalid","error":"flavor: \"huge\" is unknown; use one of small, medium, large","details":{"field":"flavor"}}` + "\n"
	if s.code != 125 || s.err != want || s.out != "" {
		t.Errorf("%+v", s)
	}
	if s := b.run("--json", "run", "--", "false"); s.code != 1 || s.err != "" {
		t.Errorf("%+v", s)
	}
}

func TestSmallCommands(t *testing.T) {
	b := newBox(t)
	if got := b.ok("version"); !strings.HasPrefix(got, "cove dev (go1.") {
		t.Errorf("version: %s", got)
	}
	if got := b.ok("version", "--json"); !strings.Contains(got, `"version":"dev"`) {
		t.Errorf("version: %s", got)
	}
	for _, words := range [][]string{{}, {"sandbox"}, {"key"}, {"audit"}} {
		if got := b.ok(words...); !strings.Contains(got, "Usage:") {
			t.Errorf("%v: %s", words, got)
		}
	}
	if got := b.ok("completion", "bash"); !strings.Contains(got, "__start_cove") {
		t.Errorf("completion: %.200s", got)
	}
	if s := b.run("__complete", "sand"); s.code != 0 || !strings.HasPrefix(s.out, "sandbox\t") {
		t.Errorf("complete: %+v", s)
	}
}
