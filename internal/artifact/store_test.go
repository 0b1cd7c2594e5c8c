package artifact_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/artifact"
)

var at = time.Date(2026, 11, 15, 9, 30, 0, 250e6, time.UTC)

func ran(code string, exit int) cove.Artifact {
	r := &cove.CodeResult{Execution: cove.Execution{
		Result: cove.Result{Outcome: cove.Exited, ExitCode: exit, Wall: 1500 * time.Microsecond}, Provider: "local",
		Stdout: cove.Output{Data: []byte("out\n"), Bytes: 4}, Stderr: cove.Output{Data: []byte("err\n"), Bytes: 4},
	}, Context: "python", Template: "base"}
	return cove.Artifact{At: at, Session: "s1", Tenant: "acme", Language: "python", Code: code, Result: r}
}

// files returns the names and texts of what a store wrote.
func files(t *testing.T, dir string) (names, texts []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		names, texts = append(names, e.Name()), append(texts, string(text))
	}
	return names, texts
}

func put(t *testing.T, s *artifact.Store, a cove.Artifact) {
	t.Helper()
	if err := s.Put(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

func TestWhenItIsKept(t *testing.T) {
	timedOut := ran("x", -1)
	timedOut.Result.Outcome = cove.TimedOut
	raised := ran("x", 0)
	raised.Result.Error = &cove.CodeError{Name: "E"}
	refused := ran("x", 126)
	refused.Result.Outcome = cove.Blocked
	for _, tt := range []struct {
		when artifact.When
		a    cove.Artifact
		want int
	}{
		{artifact.Always, ran("x", 0), 1},
		{artifact.Always, ran("x", 1), 1},
		{artifact.OnError, ran("x", 0), 0},
		{artifact.OnError, ran("x", 1), 1},
		{artifact.OnError, timedOut, 1},
		{artifact.OnError, raised, 1},
		{artifact.OnError, refused, 1},
		{artifact.OnError, cove.Artifact{}, 0},
		{artifact.Never, ran("x", 1), 0},
		{"", ran("x", 1), 0},
	} {
		dir := filepath.Join(t.TempDir(), "artifacts", "executions")
		put(t, artifact.New(dir, artifact.Config{When: tt.when}), tt.a)
		names, _ := files(t, dir)
		if len(names) != tt.want {
			t.Errorf("%s keeps %v", tt.when, names)
		}
		if _, err := os.Stat(dir); tt.want == 0 && err == nil {
			t.Errorf("%s makes a directory for nothing", tt.when)
		}
	}
}

func TestWhatIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "executions")
	s := artifact.New(dir, artifact.Config{When: artifact.Always})
	a := ran("print(<x>)", 1)
	a.Result.Results = []cove.Rich{{"text/plain": "42", "image/png": "AAAA"}, {"image/png": "AAAA"}}
	a.Result.Error = &cove.CodeError{Name: "NameError", Value: "x", Traceback: "line 1", Line: 1}
	a.Result.Security = &cove.SecurityReport{Blocked: []cove.Import{{Module: "os"}, {Module: "os"}, {Module: "socket"}}}
	a.Result.Stdout.Data = []byte("a\xff\n")
	a.Result.Refusal = &cove.Refusal{Rule: "import", Reason: "no", Word: "os"}
	put(t, s, a)
	put(t, s, a) // at the same time
	names, texts := files(t, dir)
	form := regexp.MustCompile(`^20261115T093000\.250Z_[0-9a-f]{12}(-2)?\.json$`)
	if len(names) != 2 || !form.MatchString(names[0]) || !form.MatchString(names[1]) {
		t.Fatalf("the names are %v", names)
	}
	for _, name := range append(names, ".") {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	want := `{
  "version": 1,
  "at": "2026-11-15T09:30:00.25Z",
  "session_id": "s1",
  "tenant": "acme",
  "language": "python",
  "template": "base",
  "provider": "local",
  "code": "print(<x>)",
  "code_bytes": 10,
  "code_truncated": false,
  "result": {
    "outcome": "exited",
    "exit_code": 1,
    "duration_ms": 1.5,
    "stdout": "a�\n",
    "stderr": "err\n",
    "stdout_bytes": 4,
    "stderr_bytes": 4,
    "values": [
      "42",
      ""
    ],
    "error": {
      "name": "NameError",
      "value": "x",
      "traceback": "line 1",
      "line": 1
    },
    "refusal": {
      "rule": "import",
      "reason": "no",
      "word": "os"
    },
    "meta": {
      "context_id": "python",
      "truncated": false,
      "timed_out": false,
      "blocked_imports": [
        "os",
        "socket"
      ]
    }
  }
}
`
	if d := cmp.Diff(want, texts[0]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSizeIsBounded(t *testing.T) {
	for _, filler := range []string{"x", "\x00", "é", "\"", "line\n"} {
		dir := filepath.Join(t.TempDir(), "executions")
		long := strings.Repeat(filler, 3<<20/len(filler))
		a := ran("head\n"+long+"\ntail", 1)
		a.Result.Stdout.Data = []byte(long[:1<<20])
		a.Result.Error = &cove.CodeError{Name: long[:1<<16], Value: long[:1<<16], Traceback: long[:1<<20]}
		a.Result.Refusal = &cove.Refusal{Reason: long[:1<<16], Word: long[:1<<16]}
		for range 100 {
			a.Result.Results = append(a.Result.Results, cove.Rich{"text/plain": long[:1<<14]})
		}
		put(t, artifact.New(dir, artifact.Config{When: artifact.OnError, MaxFile: 16 * cove.KiB}), a)
		_, texts := files(t, dir)
		var got struct {
			Code      string `json:"code"`
			Bytes     int    `json:"code_bytes"`
			Truncated bool   `json:"code_truncated"`
			Result    struct {
				Meta struct {
					Truncated bool `json:"truncated"`
				} `json:"meta"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(texts[0]), &got); err != nil {
			t.Fatal(err)
		}
		if len(texts[0]) > 16<<10 || !got.Truncated || !got.Result.Meta.Truncated || got.Bytes != len(a.Code) {
			t.Errorf("%q: %d bytes, %+v", filler, len(texts[0]), got.Result)
		}
		if !strings.HasPrefix(got.Code, "head\n") || !strings.HasSuffix(got.Code, "\ntail") || strings.ContainsRune(got.Code, '\uFFFD') {
			t.Errorf("%q: the code is %.60q", filler, got.Code)
		}
	}
}

func TestNamesOfModulesAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "executions")
	a := ran("x", 1)
	a.Result.Security = &cove.SecurityReport{}
	for i := range 1000 {
		a.Result.Security.Blocked = append(a.Result.Security.Blocked, cove.Import{Module: fmt.Sprintf("os.topsecret!%d%s", i, strings.Repeat("a", 240))})
	}
	put(t, artifact.New(dir, artifact.Config{When: artifact.Always, MaxFile: 4 * cove.KiB, Secrets: []string{"topsecret!"}}), a)
	_, texts := files(t, dir)
	if len(texts[0]) > 4<<10 || strings.Contains(texts[0], "topsecret") || !strings.Contains(texts[0], "os.[redacted]0aaa") {
		t.Errorf("%d bytes: %.2000s", len(texts[0]), texts[0])
	}
}

func TestSweep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "executions")
	s := artifact.New(dir, artifact.Config{When: artifact.Always, MaxAge: time.Hour, MaxFiles: 5})
	if n, err := s.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("a sweep of nothing: %d, %v", n, err)
	}
	for i := range 4 {
		a := ran(strings.Repeat("x", i), 0)
		a.At = at.Add(time.Duration(i) * time.Second)
		put(t, s, a)
	}
	names, _ := files(t, dir)
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"notes.txt", ".draft-" + string(cove.NewID()), "x_y.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(dir, names[0]), old, old); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(t.Context()); n != 2 || err != nil {
		t.Errorf("the sweep took %d: %v", n, err)
	}
	left, _ := files(t, dir)
	if want := append(slices.Clone(names[1:]), "notes.txt", "x_y.json"); !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range left {
		_ = os.Chtimes(filepath.Join(dir, name), old, old)
	}
	if _, err := s.Sweep(ctx); cove.CodeOf(err) != cove.Canceled {
		t.Errorf("a sweep that nobody waits for: %v", err)
	}
}

// TestNumberIsBounded: also between sweeps, and the newest stay.
func TestNumberIsBounded(t *testing.T) {
	for name, cfg := range map[string]artifact.Config{
		"files": {When: artifact.Always, MaxFiles: 20},
		"bytes": {When: artifact.Always, MaxBytes: 20 * 700},
	} {
		dir := filepath.Join(t.TempDir(), "executions")
		s := artifact.New(dir, cfg)
		for i := range 100 {
			a := ran("x", 0)
			a.At = at.Add(time.Duration(i) * time.Second)
			put(t, s, a)
		}
		names, _ := files(t, dir)
		if len(names) > 30 || len(names) < 10 || !strings.HasPrefix(names[len(names)-1], "20261115T093139") {
			t.Errorf("%s: %d are left, the last is %s", name, len(names), names[len(names)-1])
		}
	}
}

func TestADirectoryThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := artifact.New(file, artifact.Config{When: artifact.Always})
	if err := s.Put(t.Context(), ran("x", 0)); cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.RemedyOf(err), "SANDBOX_STORE_CODE") {
		t.Errorf("%v", err)
	}
	if _, err := s.Sweep(t.Context()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, artifact.New(dir, artifact.Config{When: artifact.Always}), ran("x", 0))
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
