package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJSONOfAFreshSandboxIsWhole: nobody can ask for the rest afterwards.
func TestJSONOfAFreshSandboxIsWhole(t *testing.T) {
	b := newBox(t).with("SANDBOX_MAX_OUTPUT_KB", "1")
	s := b.run("run", "--json", "--", "bash", "-c", "seq 1 5000; seq 1 4000 >&2")
	var got struct {
		Stdout    string `json:"stdout"`
		Stderr    string `json:"stderr"`
		Bytes     int    `json:"stdout_bytes"`
		Truncated bool   `json:"truncated"`
		OutputID  string `json:"output_id"`
	}
	if err := json.Unmarshal([]byte(s.out), &got); err != nil {
		t.Fatalf("%v in %.300s%s", err, s.out, s.err)
	}
	if strings.Count(got.Stdout, "\n") != 5000 || strings.Count(got.Stderr, "\n") != 4000 || len(got.Stdout) != got.Bytes || got.Truncated || got.OutputID != "" {
		t.Errorf("%d of %d bytes and %d, truncated %v, output %q", len(got.Stdout), got.Bytes, len(got.Stderr), got.Truncated, got.OutputID)
	}
}

// TestExecTakesTheCallersTimeout: the server was started with another one.
func TestExecTakesTheCallersTimeout(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	hasty := b.with("SANDBOX_TIMEOUT_SEC", "0.05")
	hasty.fails(124, "the time ran out", "sandbox", "exec", id, "--", "sleep", "20")
	hasty.with("COVE_API_KEY", strings.TrimSpace(read(t, b.ready.KeyFile))).
		fails(124, "the time ran out", "run", "--url", b.ready.URL, "--", "sleep", "20")
	if got := hasty.ok("sandbox", "exec", "--timeout", "20s", id, "--", "bash", "-c", "sleep 0.2; echo done"); got != "done\n" {
		t.Errorf("a flag did not win: %q", got)
	}
	b.ok("sandbox", "exec", id, "--", "sleep", "0.2")
}

func TestLongTimesNameTheMaximum(t *testing.T) {
	b := newBox(t)
	for _, text := range []string{"99999999h", "90000h", "1e300", "Inf", "9999999999999999999s"} {
		b.fails(125, "--timeout: "+text+" is out of range; the most is 87840h", "run", "--timeout", text, "--", "true")
	}
	b.fails(125, `--timeout: "h" is not a time above 0`, "run", "--timeout", "h", "--", "true")
	b.ok("run", "--timeout", "87840h", "--", "true")
}

// TestVerifyMissesAJournal: a database without one is not a clean home.
func TestVerifyMissesAJournal(t *testing.T) {
	b := newBox(t)
	b.ok("audit", "verify")
	write(t, filepath.Join(b.home, "cove.db"), "")
	if s := b.run("audit", "verify"); s.code != 1 || s.out != "main: missing: the journal was removed; still there: cove.db\n" {
		t.Errorf("%+v", s)
	}
	if err := os.Mkdir(filepath.Join(b.home, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if s := b.run("audit", "verify"); s.code != 1 || !strings.Contains(s.out, "main: missing") {
		t.Errorf("an empty folder: %+v", s)
	}
	if err := os.RemoveAll(b.home); err != nil {
		t.Fatal(err)
	}
	b.ok("run", "--", "true")
	lane := filepath.Join(b.home, "oneshot", "0")
	for _, ext := range []string{".anchor", ".key"} {
		if err := os.Remove(filepath.Join(lane, "journal"+ext)); err != nil {
			t.Fatal(err)
		}
		if s := b.run("audit", "verify"); s.code != 1 || !strings.Contains(s.out, "journal"+ext+" is missing") {
			t.Errorf("without %s: %+v", ext, s)
		}
	}
	if err := os.RemoveAll(filepath.Join(lane, "journal")); err != nil {
		t.Fatal(err)
	}
	if s := b.run("audit", "verify"); s.code != 1 || !strings.Contains(s.out, "oneshot-0: missing") {
		t.Errorf("without all: %+v", s)
	}
}
