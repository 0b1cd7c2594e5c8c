package agenttool_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/agenttool"
)

func ended(o cove.Outcome, exit int, stdout, stderr string) cove.CodeResult {
	return cove.CodeResult{
		Execution: cove.Execution{
			Result: cove.Result{Outcome: o, ExitCode: exit, Wall: 250 * time.Millisecond}, Provider: "local",
			Stdout: cove.Output{Data: []byte(stdout)}, Stderr: cove.Output{Data: []byte(stderr)},
		},
		Timeout: 5 * time.Second, Budget: 20 * cove.KiB,
	}
}

func with(r cove.CodeResult, change func(*cove.CodeResult)) cove.CodeResult {
	change(&r)
	return r
}

func raised(name, value, traceback string) func(*cove.CodeResult) {
	return func(r *cove.CodeResult) { r.Error = &cove.CodeError{Name: name, Value: value, Traceback: traceback} }
}

// TestWords: these sentences are what agents and those who test them look for.
func TestWords(t *testing.T) {
	for name, tt := range map[string]struct {
		r    cove.CodeResult
		want string
	}{
		"output":            {ended(cove.Exited, 0, "hello\n", ""), "hello"},
		"nothing":           {ended(cove.Exited, 0, "", ""), "(no output)"},
		"output and errors": {ended(cove.Exited, 0, "hello", "careful\n"), "hello\n[stderr]\ncareful"},
		"a value": {
			with(ended(cove.Exited, 0, "hello\n", ""), func(r *cove.CodeResult) { r.Results = []cove.Rich{{"text/plain": "43", "text/html": "<b>43</b>"}} }),
			"hello\n43",
		},
		"an image": {with(ended(cove.Exited, 0, "", ""), func(r *cove.CodeResult) {
			r.Results = []cove.Rich{{"text/plain": "<Figure>", "image/png": "AAAA"}, {"image/svg+xml": "<svg/>"}, {"application/json": "[1]"}}
		}), "<Figure>\n[image/png, 3 bytes]\n[image/svg+xml, 6 bytes]\n[application/json, 3 bytes]"},
		"started again": {
			with(ended(cove.Exited, 0, "hello\n", ""), func(r *cove.CodeResult) { r.Restarted = true }),
			"hello\n[The session had been stopped and was started again: its files are kept, variables and programs that ran are gone.]",
		},
		"no text":             {ended(cove.Exited, 0, "a\xff", ""), "a\uFFFD"},
		"time":                {ended(cove.TimedOut, -1, "", ""), "Code execution timed out after 5s"},
		"time, with output":   {ended(cove.TimedOut, -1, "1\n2\n", ""), "Code execution timed out after 5s\n\nOutput until then:\n1\n2"},
		"half a second":       {with(ended(cove.TimedOut, -1, "", ""), func(r *cove.CodeResult) { r.Timeout = 500 * time.Millisecond }), "Code execution timed out after 0.5s"},
		"time, with an error": {with(ended(cove.TimedOut, -1, "", ""), raised("TimeoutError", "x", "")), "Code execution timed out after 5s"},
		"syntax":              {with(ended(cove.Exited, 1, "", ""), raised("SyntaxError", "invalid syntax (line 1)", "")), "Python syntax error: invalid syntax (line 1)"},
		"syntax in a cell": {with(ended(cove.Exited, 1, "", ""), func(r *cove.CodeResult) {
			r.Error = &cove.CodeError{Name: "SyntaxError", Value: "invalid syntax (<cell 7>, line 3)", Line: 3}
		}), "Python syntax error: invalid syntax (line 3)"},
		"indentation":    {with(ended(cove.Exited, 1, "", ""), raised("IndentationError", "unexpected indent", "")), "Python syntax error: unexpected indent"},
		"raised":         {with(ended(cove.Exited, 1, "", ""), raised("ZeroDivisionError", "division by zero", "")), "Execution failed: ZeroDivisionError: division by zero"},
		"raised nothing": {with(ended(cove.Exited, 1, "", ""), raised("KeyboardInterrupt", "", "")), "Execution failed: KeyboardInterrupt"},
		"a traceback": {
			with(ended(cove.Exited, 1, "a\n", "warned\n"), raised("E", "x", "Traceback\nE: x\n")),
			"Execution failed: warned\nTraceback\nE: x\n\nOutput until then:\na",
		},
		"exit code":            {ended(cove.Exited, 3, "", ""), "Execution failed: the code failed with exit code 3"},
		"exit code and stderr": {ended(cove.Exited, 3, "", "no\n"), "Execution failed: no"},
		"memory":               {ended(cove.OutOfMemory, 137, "", "x"), "Execution failed: x\nthe code needed more memory than it may have"},
		"too much": {
			with(ended(cove.Exited, 0, "head\n... (output truncated)\ntail\n", ""), func(r *cove.CodeResult) { r.Stdout.Truncated = true }),
			"head\n... (output truncated)\ntail",
		},
		"too large a value": {with(ended(cove.Exited, 0, "", ""), func(r *cove.CodeResult) {
			r.Truncated, r.Results = true, []cove.Rich{{"text/plain": "1"}}
		}), "1\n... (output truncated)"},
		"an import": {with(ended(cove.Blocked, 126, "", "cove: blocked"), func(r *cove.CodeResult) {
			r.Security = &cove.SecurityReport{Blocked: []cove.Import{{Module: "os"}}}
		}), "Security policy blocked import: os"},
		"imports": {with(ended(cove.Blocked, 126, "", ""), func(r *cove.CodeResult) {
			r.Security = &cove.SecurityReport{Blocked: []cove.Import{{Module: "os"}, {Module: "socket"}, {Module: "os"}}}
		}), "Security policy blocked import: os, socket"},
		"code that nobody could read": {with(ended(cove.Blocked, 126, "", ""), func(r *cove.CodeResult) {
			r.Security = &cove.SecurityReport{Syntax: &cove.CodeError{Value: "too deep", Line: 2}}
		}), "Python syntax error: too deep (line 2)"},
		"another rule": {
			with(ended(cove.Blocked, 126, "", ""), func(r *cove.CodeResult) { r.Refusal = &cove.Refusal{Reason: "python is not on the list"} }),
			"Security policy blocked this code: python is not on the list",
		},
		"no rule": {ended(cove.Blocked, 126, "", ""), "Security policy blocked this code: it is not allowed"},
		"a warning": {with(ended(cove.Exited, 0, "x\n", ""), func(r *cove.CodeResult) {
			r.Security = &cove.SecurityReport{Mode: cove.ImportsWarn, Blocked: []cove.Import{{Module: "os"}}}
		}), "x"},
	} {
		if got := agenttool.Result(&tt.r).Text; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestParts(t *testing.T) {
	r := with(ended(cove.TimedOut, -1, "out\n", "err\n"), raised("TimeoutError", "late", ""))
	r.Stderr.Truncated = true
	r.Security = &cove.SecurityReport{Blocked: []cove.Import{{Module: "os"}}}
	text, err := json.Marshal(agenttool.Result(&r))
	want := `{"result":"Code execution timed out after 5s\n\nOutput until then:\nout\n... (output truncated)","stdout":"out\n","stderr":"err\nTimeoutError: late",` +
		`"exit_code":-1,"duration":0.25,"meta":{"runtime":"local","truncated":true,"timed_out":true,"blocked_imports":["os"],"resource_limits":{"timeout_sec":5,"max_output_kb":20}}}`
	if d := cmp.Diff(want, string(text)); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestWordsOfThePlatform(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{cove.Errorf(cove.Unavailable, "Docker daemon not available").Remedy("Set SANDBOX_TYPE=local or start Docker daemon"), "Docker daemon not available\nSet SANDBOX_TYPE=local or start Docker daemon"},
		{cove.Errorf(cove.NotFound, "there is no session"), "Execution failed: there is no session"},
		{context.Canceled, "Execution failed: the caller went away"},
		{errors.New("secret"), "Execution failed: internal error; the log has the cause under the request id"},
	} {
		got := agenttool.Failed(tt.err, time.Second)
		if got.Text != tt.want || got.ExitCode != -1 || got.Meta.ResourceLimits.TimeoutSec != 1 {
			t.Errorf("%q, want %q: %+v", got.Text, tt.want, got)
		}
	}
}
