package fake_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

func kernel(t *testing.T) (cove.Kernel, cove.Sandbox) {
	t.Helper()
	s := sandbox(t, cove.Spec{})
	k, err := fake.Kernels{}.Open(t.Context(), s, cove.KernelSpec{Language: "calc"})
	if err != nil {
		t.Fatal(err)
	}
	return k, s
}

// code runs a script and returns what it printed.
func code(t *testing.T, k cove.Kernel, text string, limits cove.Limits) (*cove.CodeResult, string) {
	t.Helper()
	out := ""
	r, err := k.Run(t.Context(), cove.KernelRun{Code: text, Limits: limits, OnOutput: func(c cove.Chunk) { out += string(c.Stream) + ":" + string(c.Data) }})
	if err != nil {
		t.Fatal(err)
	}
	return r, out
}

func TestCalc(t *testing.T) {
	k, _ := kernel(t)
	for _, tc := range []struct{ text, out, result, fails string }{
		{"x = 42", "", "", ""},
		{"print(x)", "stdout:42\n", "", ""},
		{"x + 1", "", "43", ""},
		{"y = (x - 2) * 2 / 4\ny", "", "20", ""},
		{"print(\"a b\", -x)\nwarn(\"w\")", "stdout:a b -42\nstderr:w\n", "", ""},
		{"s = \"ab\" + \"cd\"\ns", "", "abcd", ""},
		{"# a comment\n\n1\n", "", "", ""},
		{"raise ValueError it is wrong", "", "", "ValueError: it is wrong"},
		{"unknown", "", "", "NameError: name 'unknown' is not defined"},
		{"1 / 0", "", "", "ZeroDivisionError: division by zero"},
		{"1 + \"a\"", "", "", "TypeError: a text and a number do not mix"},
		{"print(1) + (2", "", "", "SyntaxError: a parenthesis has no partner"},
		{"\"open", "", "", "SyntaxError: a text has no end"},
		{"1x = 2", "", "", "SyntaxError: \"1x\" is not a name"},
		{"1 2", "", "", "SyntaxError: unexpected \"2\""},
		{"1 +", "", "", "SyntaxError: a value is missing"},
		{"()", "", "", "SyntaxError: a value is missing"},
		{")(", "", "", "SyntaxError: a value is missing"},
		{"(1 2)", "", "", "SyntaxError: ) expected"},
		{"sleep x", "", "", "ValueError: \"x\" is not a time"},
		{"sleep 0", "", "", ""},
		{"print(z)", "", "", "NameError: name 'z' is not defined"},
	} {
		r, out := code(t, k, tc.text, cove.Limits{})
		result, fails := "", ""
		if len(r.Results) > 0 {
			result = r.Results[0]["text/plain"]
		}
		if r.Error != nil {
			fails = r.Error.Name + ": " + r.Error.Value
		}
		if diff := cmp.Diff([]string{tc.out, tc.result, tc.fails}, []string{out, result, fails}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.text, diff)
		}
		if (r.ExitCode == 0) != (tc.fails == "") || r.Outcome != cove.Exited {
			t.Errorf("%q ended as %s with %d", tc.text, r.Outcome, r.ExitCode)
		}
	}
	for _, deep := range []string{strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500), strings.Repeat("-", 500) + "1"} {
		if r, _ := code(t, k, deep, cove.Limits{}); r.Error == nil {
			t.Errorf("%.20s… is no error", deep)
		}
	}
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestKernelLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := kernel(t)
		begun := time.Now()
		r, _ := code(t, k, "x = 1\nloop", cove.Limits{Wall: time.Minute})
		if r.Outcome != cove.TimedOut || r.ExitCode != -1 || r.Wall != time.Minute || time.Since(begun) != time.Minute {
			t.Errorf("a loop with a limit gives %+v", r)
		}
		r, out := code(t, k, "print(x)\nprint(x)", cove.Limits{Output: 3})
		if r.Outcome != cove.OutputLimit || out != "stdout:1\nstdout:1" {
			t.Errorf("the output limit gives %+v and %q", r, out)
		}
		r, out = code(t, k, "sleep 90\nprint(x)", cove.Limits{})
		if out != "stdout:1\n" || r.Wall != 90*time.Second {
			t.Errorf("sleep gives %q after %s", out, r.Wall)
		}
		if !k.Alive() {
			t.Error("the interpreter is dead")
		}
		if err := k.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestKernelInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := kernel(t)
		if err := k.Interrupt(t.Context()); err != nil {
			t.Error(err)
		}
		code(t, k, "x = 7", cove.Limits{})
		go func() {
			<-time.After(time.Second)
			_ = k.Interrupt(t.Context())
			_ = k.Interrupt(t.Context())
		}()
		r, _ := code(t, k, "loop\nx = 8", cove.Limits{})
		if r.Error == nil || r.Error.Name != "Interrupted" {
			t.Errorf("an interrupted loop gives %+v", r.Error)
		}
		if r, _ := code(t, k, "x", cove.Limits{}); r.Results[0]["text/plain"] != "7" {
			t.Errorf("x is %v after an interrupt", r.Results)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := k.Run(ctx, cove.KernelRun{Code: "loop"})
		wants(t, cove.Timeout, err)
		_, err = k.Run(ctx, cove.KernelRun{Code: "1"})
		wants(t, cove.Timeout, err)
		if err := k.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestKernelDies(t *testing.T) {
	k, _ := kernel(t)
	if r, _ := code(t, k, "print(1)\ndie", cove.Limits{}); r.Error == nil || r.Error.Name != "KernelDied" || r.Outcome != cove.Signaled {
		t.Errorf("die gives %+v", r)
	}
	if k.Alive() {
		t.Error("it is alive")
	}
	if r, _ := code(t, k, "1", cove.Limits{}); r.Error == nil || r.Error.Name != "KernelDied" {
		t.Errorf("a dead interpreter gives %+v", r)
	}

	k, s := kernel(t)
	done := make(chan *cove.CodeResult)
	go func() {
		r, _ := k.Run(context.WithoutCancel(t.Context()), cove.KernelRun{Code: "loop"})
		done <- r
	}()
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r == nil || r.Error == nil || r.Error.Name != "KernelDied" {
		t.Errorf("an interpreter whose sandbox is gone gives %+v", r)
	}
	_, err := fake.Kernels{}.Open(t.Context(), s, cove.KernelSpec{Language: "calc"})
	wants(t, cove.NotFound, err)
	_, err = fake.Kernels{Names: []string{"python"}}.Open(t.Context(), s, cove.KernelSpec{Language: "calc"})
	wants(t, cove.Invalid, err)
}

func TestRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			req     cove.RunRequest
			status  string
			rows    int
			failure string
		}{
			{cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"}, "success", 1, ""},
			{cove.RunRequest{Type: cove.QuerySQL, SQL: "rows 500", MaxRows: 3}, "success", 3, ""},
			{cove.RunRequest{Type: cove.QuerySQL, SQL: "fail"}, "error", 0, "SQL_EXECUTION_ERROR"},
			{cove.RunRequest{Type: cove.QueryPython, Python: "fail"}, "error", 0, "PYTHON_EXECUTION_ERROR"},
			{cove.RunRequest{Type: cove.QuerySQL, SQL: "hang", Timeout: 5 * time.Second}, "timeout", 0, cove.RunTimeout},
		} {
			a, _, err := fake.Runner{}.Run(t.Context(), nil, cove.RunQuestion{Request: tc.req})
			if err != nil {
				t.Fatal(err)
			}
			failure := ""
			if a.Error != nil {
				failure = a.Error.Type
			}
			if a.Status != tc.status || a.RowCount != tc.rows || len(a.Rows) != tc.rows || failure != tc.failure {
				t.Errorf("%+v gives %+v (%s)", tc.req, a, failure)
			}
		}
		_, _, err := fake.Runner{}.Run(t.Context(), nil, cove.RunQuestion{Request: cove.RunRequest{Type: cove.QuerySQL, SQL: "broken"}})
		wants(t, cove.Unavailable, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = fake.Runner{}.Run(ctx, nil, cove.RunQuestion{Request: cove.RunRequest{Type: cove.QuerySQL, SQL: "hang"}})
		wants(t, cove.Timeout, err)
		_, _, err = fake.Runner{}.Run(ctx, nil, cove.RunQuestion{Request: cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"}})
		wants(t, cove.Timeout, err)
	})
}
