package pyrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/datarun/pyrun"
)

// puppet is an interpreter that answers as it is told, once for each step.
type puppet struct {
	cove.Kernel
	steps  []step
	adopt  error
	shut   error
	open   error
	closed bool
}

type step struct {
	result *cove.CodeResult
	err    error
	prints string
}

func (p *puppet) Languages() []string { return nil }

func (p *puppet) Open(context.Context, cove.Starter, cove.KernelSpec) (cove.Kernel, error) {
	return p, p.open
}

func (p *puppet) Adopt(context.Context, string, map[string]string) error { return p.adopt }

func (p *puppet) Close(context.Context) error {
	p.closed = true
	return p.shut
}

func (p *puppet) Run(_ context.Context, run cove.KernelRun) (*cove.CodeResult, error) {
	s := p.steps[0]
	p.steps = p.steps[1:]
	if s.prints != "" && run.OnOutput != nil {
		run.OnOutput(cove.Chunk{Stream: cove.Stdout, Data: []byte(s.prints)})
	}
	return s.result, s.err
}

// fine is a step without anything to say.
func fine() step { return ended("", "", 0) }

// loaded is the first step of an interpreter that is confined.
func loaded() step { return says(`{"confined": "hard"}`) }

// ended is a step that ended with an error, or without one.
func ended(name, value string, line int) step {
	r := &cove.CodeResult{}
	r.Outcome, r.Wall = cove.Exited, time.Millisecond
	if name != "" {
		r.Error = &cove.CodeError{Name: name, Value: value, Line: line}
	}
	return step{result: r}
}

func how(s step, outcome cove.Outcome) step {
	s.result.Outcome = outcome
	return s
}

// says is a last step that tells a result.
func says(text string) step {
	s := fine()
	s.result.Results = []cove.Rich{{"application/vnd.cove.run+json": text}}
	return s
}

func (p *puppet) ask(t *testing.T) (*pyrun.Result, error) {
	t.Helper()
	return pyrun.Run(t.Context(), p, nil, pyrun.Question{Code: "x", Timeout: 10 * time.Second, MaxRows: 2, MaxOutput: 1100, Memory: 512 * cove.MiB})
}

// TestMapping: every end of every step has its type and its words.
func TestMapping(t *testing.T) {
	const (
		memory = "the code needs more than the 512 MB of memory that this session has"
		unsaid = "the code was not run, because the interpreter does not say whether the kernel confines it"
		forged = "the interpreter's answer cannot be understood: the code may have changed what tells its result"
	)
	cell := `["` + strings.Repeat("x", 600) + `"]`
	for name, c := range map[string]struct {
		steps []step
		kind  string
		want  string
	}{
		"loading breaks":            {[]step{ended("KeyError", "'x'", 0)}, cove.RunInternalError, "the tables could not be loaded: KeyError: 'x'"},
		"loading needs memory":      {[]step{ended("MemoryError", "", 0)}, cove.RunPythonFailed, memory},
		"loading is killed":         {[]step{how(ended("KernelDied", "gone", 0), cove.OutOfMemory)}, cove.RunPythonFailed, memory},
		"loading takes too long":    {[]step{how(ended("TimeoutError", "", 0), cove.TimedOut)}, cove.RunTimeout, "loading the tables took longer than 1m0s"},
		"there is no pandas":        {[]step{ended("ModuleNotFoundError", "No module named 'pandas'", 1)}, cove.RunUnavailable, "the Python of this template cannot load pandas (No module named 'pandas'): use a template with pandas, such as data"},
		"the kernel refuses":        {[]step{ended("Unconfined", "no", 0)}, cove.RunUnavailable, "the code was not run, because the kernel could not confine it: no"},
		"nothing is said of it":     {[]step{fine()}, cove.RunInternalError, unsaid},
		"something else is said":    {[]step{says(`{"confined": "none"}`)}, cove.RunInternalError, unsaid},
		"a table is bad":            {[]step{ended("TableProblem", "a.csv is empty", 0)}, cove.RunInvalidInput, "a.csv is empty"},
		"the code raises":           {[]step{loaded(), ended("ValueError", "no", 3)}, cove.RunPythonFailed, "ValueError: no (line 3)"},
		"the code says little":      {[]step{loaded(), ended("KeyboardInterrupt", "", 0)}, cove.RunPythonFailed, "KeyboardInterrupt"},
		"the code says much":        {[]step{loaded(), ended("E", strings.Repeat("x", 5000), 0)}, cove.RunPythonFailed, "E: " + strings.Repeat("x", 2000) + "…"},
		"the code is no code":       {[]step{loaded(), ended("IndentationError", "unexpected indent (<cell 2>, line 2)", 2)}, cove.RunPythonFailed, "Python syntax error: unexpected indent (line 2)"},
		"the code has no place":     {[]step{loaded(), ended("SyntaxError", "it has null bytes", 0)}, cove.RunPythonFailed, "Python syntax error: it has null bytes"},
		"the code takes too long":   {[]step{loaded(), how(ended("TimeoutError", "", 0), cove.TimedOut)}, cove.RunTimeout, "the run took longer than 10s"},
		"the code needs memory":     {[]step{loaded(), ended("_ArrayMemoryError", "no", 2)}, cove.RunPythonFailed, memory},
		"the code is killed":        {[]step{loaded(), how(ended("KernelDied", "it is gone", 0), cove.Signaled)}, cove.RunPythonFailed, "it is gone"},
		"the result breaks":         {[]step{loaded(), fine(), ended("KeyError", "'x'", 1)}, cove.RunPythonFailed, "the result cannot be told: KeyError: 'x'"},
		"the result is no table":    {[]step{loaded(), fine(), ended("Wrong", "result_df is a list", 1)}, cove.RunPythonFailed, "result_df is a list"},
		"the result needs memory":   {[]step{loaded(), fine(), ended("MemoryError", "", 0)}, cove.RunPythonFailed, memory},
		"the result takes too long": {[]step{loaded(), fine(), how(ended("TimeoutError", "", 0), cove.TimedOut)}, cove.RunTimeout, "the run took longer than 10s"},
		"no result":                 {[]step{loaded(), fine(), fine()}, cove.RunInternalError, forged},
		"no JSON":                   {[]step{loaded(), fine(), says("hello")}, cove.RunInternalError, forged},
		"another form":              {[]step{loaded(), fine(), says(`{"rows": 1}`)}, cove.RunInternalError, forged},
		"a problem":                 {[]step{loaded(), fine(), says(`{"problem": "too wide"}`)}, cove.RunPythonFailed, "too wide"},
		"too many rows":             {[]step{loaded(), fine(), says(`{"columns": ["a"], "rows": [[1], [2], [3]]}`)}, cove.RunInternalError, forged},
		"too many bytes":            {[]step{loaded(), fine(), says(`{"columns": ["a"], "rows": [` + cell + `,` + cell + `]}`)}, cove.RunInternalError, forged},
		"too many cells":            {[]step{loaded(), fine(), says(`{"columns": ["a"], "rows": [[1, 2]]}`)}, cove.RunInternalError, forged},
		"a row that is none":        {[]step{loaded(), fine(), says(`{"columns": ["a"], "rows": [null]}`)}, cove.RunInternalError, forged},
		"types without columns":     {[]step{loaded(), fine(), says(`{"columns": [], "types": ["int64"]}`)}, cove.RunInternalError, forged},
		"a long name":               {[]step{loaded(), fine(), says(`{"columns": ["` + strings.Repeat("x", 5000) + `"]}`)}, cove.RunInternalError, forged},
	} {
		p := &puppet{steps: c.steps}
		r, err := p.ask(t)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := "error"
		if c.kind == cove.RunTimeout {
			want = "timeout"
		}
		if diff := cmp.Diff(&cove.RunError{Type: c.kind, Message: c.want}, r.Answer.Error); diff != "" || r.Answer.Status != want || !p.closed {
			t.Errorf("%s: %s, closed %v %s", name, r.Answer.Status, p.closed, diff)
		}
		if r.Answer.Rows == nil || r.Answer.Columns == nil || len(r.Answer.Rows) != 0 {
			t.Errorf("%s: %+v", name, r.Answer)
		}
	}
}

// TestLost: an interpreter that cannot be had or is lost is no answer.
func TestLost(t *testing.T) {
	broken := errors.New("the sandbox is gone")
	for name, p := range map[string]*puppet{
		"opening":  {open: broken},
		"adopting": {adopt: broken},
		"loading":  {steps: []step{{err: broken}}},
		"running":  {steps: []step{loaded(), {err: broken}}},
		"telling":  {steps: []step{loaded(), fine(), {err: broken}}},
		"closing":  {steps: []step{loaded(), fine(), says(`{}`)}, shut: broken},
	} {
		if r, err := p.ask(t); !errors.Is(err, broken) || r != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if !p.closed && name != "opening" {
			t.Errorf("%s: it was not closed", name)
		}
	}
}

// TestPrinted: what the code printed is cut between two characters, and that is said.
func TestPrinted(t *testing.T) {
	for _, c := range []struct{ prints, want string }{
		{"hello", "hello"},
		{"h\xffi", "h\uFFFDi"},
		{strings.Repeat("x", 1100), strings.Repeat("x", 1100)},
		{strings.Repeat("x", 1101), strings.Repeat("x", 1078) + "... (output truncated)"},
		{"x" + strings.Repeat("é", 1000), "x" + strings.Repeat("é", 538) + "... (output truncated)"},
	} {
		code := fine()
		code.prints = c.prints
		r, err := (&puppet{steps: []step{loaded(), code, says(`{"columns": ["a"], "types": ["int64"], "rows": [[1]], "truncated": true}`)}}).ask(t)
		if err != nil {
			t.Fatal(err)
		}
		want := &cove.RunAnswer{
			Status: "success", Columns: []string{"a"}, Types: []string{"int64"}, Rows: []json.RawMessage{json.RawMessage("[1]")},
			RowCount: 1, Wall: 2 * time.Millisecond, Truncated: true, Stdout: c.want, Confined: cove.Hard,
		}
		if diff := cmp.Diff(want, r.Answer); diff != "" || r.Load != time.Millisecond {
			t.Error(diff)
		}
	}
}
