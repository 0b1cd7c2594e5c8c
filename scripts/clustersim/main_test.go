package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func play(t *testing.T, args ...string) (out, problem string, code int) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(args, &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

// page is where the tables of this command stand; what they are made of is named from
// the same folder.
const page = "docs/scale.md"

// quick is how many sandboxes a table may be about to be made again by a test.
const quick = 1000

// TestPage makes the tables of docs/scale.md anew, but for the largest.
func TestPage(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round otherwise, and a day depends on every bit")
	}
	t.Chdir("../..")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	tables := block.FindAllStringSubmatch(string(text), -1)
	if len(tables) < 5 {
		t.Errorf("the page has %d tables", len(tables))
	}
	for _, m := range tables {
		o, err := parse(strings.Fields(m[1]), os.Stderr)
		if err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		if o.Sandboxes > quick {
			continue
		}
		made, err := tableOf(m[1], os.Stderr)
		if err != nil || string(made) != m[0] {
			t.Errorf("%s has another table by now, %v; make them anew: go run ./scripts/clustersim -write docs/scale.md\n%s", m[1], err, made)
		}
	}
}

func TestWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.md")
	was := "before\n<!-- clustersim: -nodes 2 -sandboxes 5 -length 1h -->\nold\n<!-- clustersim end -->\nafter\n"
	if err := os.WriteFile(name, []byte(was), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, problem, code := play(t, "-write", name); code != 0 {
		t.Fatal(problem)
	}
	text, err := os.ReadFile(name)
	if err != nil || strings.Contains(string(text), "old") || !strings.Contains(string(text), "| nodes | 2 with") || !strings.HasPrefix(string(text), "before\n<!-- clustersim: -nodes 2") || !strings.HasSuffix(string(text), "<!-- clustersim end -->\nafter\n") {
		t.Errorf("%v:\n%s", err, text)
	}
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(was, "-nodes 2", "-nodes -2")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, problem, code := play(t, "-write", name); code != 1 || !strings.Contains(problem, "nodes") {
		t.Errorf("%d %s", code, problem)
	}
}

func TestCompare(t *testing.T) {
	out, problem, code := play(t, "-nodes", "5", "-sandboxes", "50", "-length", "2h", "-compare")
	if code != 0 || !strings.HasPrefix(out, "| | better of two | least loaded | chance |\n") {
		t.Errorf("%d %s\n%s", code, problem, out)
	}
}

// TestReplay has a run that is as it should be, and the same with all sessions on
// one node.
func TestReplay(t *testing.T) {
	good := filepath.Join(t.TempDir(), "trace.jsonl")
	flags := []string{"-nodes", "3", "-sandboxes", "60", "-length", "1h", "-median", "2m", "-crashes", "24", "-drains", "0", "-outage", "0s", "-memory", "120g", "-sessions", "90"}
	if _, problem, code := play(t, append(flags, "-record", good)...); code != 0 {
		t.Fatal(problem)
	}
	if out, problem, code := play(t, "-seed", "5", "-replay", good); code != 0 || strings.Contains(out, "differs") || !strings.Contains(out, "| sessions lost |") {
		t.Errorf("%d %s\n%s", code, problem, out)
	}
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	var altered []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, `"node","node"`) {
			line = strings.NewReplacer("n00001", "n00000", "n00002", "n00000").Replace(line)
		}
		altered = append(altered, line)
	}
	bad := filepath.Join(t.TempDir(), "altered.jsonl")
	if err := os.WriteFile(bad, []byte(strings.Join(altered, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, problem, code := play(t, "-seed", "5", "-replay", bad); code != 1 || !strings.Contains(out, "differs") || !strings.Contains(problem, "memory over nodes") {
		t.Errorf("%d %s\n%s", code, problem, out)
	}
}

func TestWrongFlags(t *testing.T) {
	for says, args := range map[string][]string{
		"is no flag":  {"more"},
		"not defined": {"-colour"},
		"not a size":  {"-memory", "much"},
		"placement":   {"-placement", "best"},
		"no such":     {"-replay", filepath.Join(t.TempDir(), "none")},
		"none.md":     {"-write", filepath.Join(t.TempDir(), "none.md")},
	} {
		if _, problem, code := play(t, args...); code != 1 || !strings.Contains(problem, says) {
			t.Errorf("%v: %d %s", args, code, problem)
		}
	}
}
