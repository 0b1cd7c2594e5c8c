package duckdb_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
	"github.com/cove-sandbox/cove/internal/testkit/program"
)

// TestSave: the file that DuckDB writes is the one that Python reads.
func TestSave(t *testing.T) {
	var path string
	h := loaded(t, &puppet{play: honest(ask.VerbFrame, func(q *part, r *ask.Request) {
		path = r.Frame.Path
		q.behave(r)
	})})
	var code string
	said, err := h.Save(t.Context(), question, "top", func(_ context.Context, text string) (*cove.CodeResult, error) {
		code = text
		return &cove.CodeResult{Execution: cove.Execution{Result: cove.Result{Outcome: cove.Exited}}}, nil
	})
	if err != nil || said.Count != 2 || !strings.HasPrefix(path, "/tmp/.cove-frame-") || code != duckdb.FrameCode("top", path) {
		t.Errorf("got %+v, %v; %s", said, err, path)
	}
}

// TestNoFrame: what goes wrong in Python is told, and the file does not stay.
func TestNoFrame(t *testing.T) {
	result := func(outcome cove.Outcome, name, value string) *cove.CodeResult {
		out := &cove.CodeResult{Error: &cove.CodeError{Name: name, Value: value}}
		if out.Outcome = outcome; name == "" {
			out.Error = nil
		}
		return out
	}
	for _, c := range []struct {
		name   string
		result *cove.CodeResult
		err    error
		kind   string
		says   string
		advice string
	}{
		{"no pandas", result(cove.Exited, "ModuleNotFoundError", "No module named 'pandas'\x1b"), nil, cove.RunPythonFailed, "No module named 'pandas'", "template"},
		{"no memory", result(cove.Exited, "MemoryError", ""), nil, cove.RunPythonFailed, "MemoryError", "larger"},
		{"a dead one", result(cove.OutOfMemory, "KernelDied", "it ran out of memory"), nil, cove.RunPythonFailed, "KernelDied", "larger"},
		{"another error", result(cove.Exited, "TypeError", "'int' object is not callable"), nil, cove.RunPythonFailed, "not callable", "restart"},
		{"an end", result(cove.Killed, "", ""), nil, cove.RunPythonFailed, "killed", "restart"},
		{"a late one", result(cove.TimedOut, "TimeoutError", "too late"), nil, cove.RunTimeout, "too long", "fewer"},
		{"none", nil, errGone, cove.RunUnavailable, "gone", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &puppet{play: func(q *part) {
				if q.argv[0] != "rm" {
					honest("", nil)(q)
				}
			}}
			h := loaded(t, in)
			said, err := h.Save(t.Context(), question, "top", func(context.Context, string) (*cove.CodeResult, error) { return c.result, c.err })
			if wantType(t, err, c.kind, c.says); said != nil || !strings.Contains(cove.RemedyOf(err), c.advice) || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v", said, err)
			}
			in.end()
			if last := in.parts[len(in.parts)-1].argv; last[0] != "rm" || !strings.HasPrefix(last[3], "/tmp/.cove-frame-") {
				t.Errorf("the last program was %q", last)
			}
		})
	}
	h := loaded(t, &puppet{play: honest(ask.VerbFrame, func(q *part, r *ask.Request) {
		q.say(r, ask.Answer{Fault: &ask.Fault{Kind: ask.Failed, Message: "no such column"}})
	})})
	_, err := h.Save(t.Context(), question, "top", nil)
	wantType(t, err, cove.RunSQLFailed, "no such column")
}

// TestFrameCode: it is one statement, which leaves nothing behind but the frame, and
// the file goes also where it cannot be read.
func TestFrameCode(t *testing.T) {
	python := pandas(t)
	file := t.TempDir() + `/a "quoted" \ name`
	code := "import os\nopen(P, 'w').close()\nbefore = set(globals()) | {'before', 'e'}\ntry:\n    " + duckdb.FrameCode("top", file) +
		"\nexcept Exception as e:\n    print(type(e).__name__)\nprint(os.path.exists(P), set(globals()) - before)\n"
	cmd := exec.CommandContext(t.Context(), python, "-c", "import sys; P = sys.argv[1]; exec(sys.argv[2])", file, code)
	out, err := cmd.CombinedOutput()
	if text := string(out); err != nil || !strings.HasSuffix(text, "\nFalse set()\n") || !strings.Contains(text, "Error") {
		t.Errorf("got %s, %v", text, err)
	}
}

// pandas is a Python that has it.
func pandas(t *testing.T) string {
	t.Helper()
	const python = "/usr/bin/python3" // which sandboxes show
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import pandas").CombinedOutput(); err != nil {
		t.Skipf("there is no pandas here: %v %s", err, out)
	}
	return python
}

// TestFrameTypes: every kind of column has the type in pandas that it should, with
// and without NULL, and no value is lost.
func TestFrameTypes(t *testing.T) {
	python, file := pandas(t), t.TempDir()+"/f"
	if out, err := exec.CommandContext(t.Context(), python, program.Input(t, "testdata/npz.py"), file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	show := duckdb.FrameCode("f", file) + "\nfor i, n in enumerate(f.columns):\n    print(n, f.dtypes.iloc[i], [str(v) for v in f.iloc[:, i]])"
	out, err := exec.CommandContext(t.Context(), python, "-c", show).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := os.ReadFile("testdata/frame.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(out), "\n")); diff != "" {
		t.Error(diff)
	}
}
