package analyze_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/analyze"
	"github.com/cove-sandbox/cove/internal/policy"
)

// TestHostileCode: whatever is sent, there is an answer, code that cannot be read
// is refused, and the next request is served.
func TestHostileCode(t *testing.T) {
	h, a, p := newHost(t), analyze.New(), rules(t, policy.Imports{})
	const end = "\nimport os\n"
	for _, c := range []struct {
		name, code string
		want       string // syntax, unread, or os
	}{
		{"nothing", "", ""},
		{"a long string", "x = '" + strings.Repeat("a", 15<<20) + "'" + end, "os"},
		{"a long comment", "# " + strings.Repeat("import os ", 1<<20) + end, "os"},
		{"many lines", strings.Repeat("x = 1\n", 5<<19) + end, "unread"},
		{"many brackets", strings.Repeat("[],", 5<<20) + end, "unread"},
		{"a long number", "x = " + strings.Repeat("9", 1<<20) + end, "syntax"},
		{"a long hexadecimal number", "x = 0x" + strings.Repeat("f", 1<<20) + end, "os"},
		{"a number that is multiplied", "__import__('o' * 99999999999 + 's')", "?"},
		{"a number that is raised", "__import__('o' * 9**9**9)", "?"},
		{"a wide format", "__import__('%099999999999d' % 1)", "?"},
		{"a sum without end", "x = " + strings.Repeat("'a' + ", 1000) + "'os'\n__import__(x)", "?"},
		{"round and round", "a = b\nb = a\na = a + 'x'\nb = b + a + 'y'\n__import__(a)", "?"},
		{"many names", many("v%d = v%d\n", 100) + "v100 = __import__\nv0('os')", "os"},
		{"names without end", many("v%d = v%d\n", 20_000) + "v20000 = __import__\nv0('os')", "unread"},
		{"parentheses", strings.Repeat("(", 100_000) + end, "syntax"},
		{"parentheses that close", strings.Repeat("(", 150) + "1" + strings.Repeat(")", 150) + end, "os"},
		{"signs", strings.Repeat("-", 100_000) + "1" + end, "unread"},
		{"nots", strings.Repeat("not ", 100_000) + "1" + end, "unread"},
		{"lambdas", strings.Repeat("lambda:", 100_000) + "1" + end, "unread"},
		{"attributes", "a" + strings.Repeat(".b", 100_000) + end, "unread"},
		{"calls", "f" + strings.Repeat("()", 100_000) + end, "unread"},
		{"sums", "1" + strings.Repeat("+1", 100_000) + end, "unread"},
		{"subscripts", "a" + strings.Repeat("[0]", 100_000) + end, "unread"},
		{"blocks", blocks(200) + end, "syntax"},
		{"elifs", "if 1: pass\n" + strings.Repeat("elif 1: pass\n", 50_000) + end, "unread"},
		{"f-strings", strings.Repeat("f'{", 200) + "1" + strings.Repeat("}'", 200) + end, "syntax"},
		{"NUL", "x = 1\x00\nimport os", "syntax"},
		{"NUL in a comment", "# \x00\nimport os", "syntax"},
		{"a byte order mark", "\ufeffimport os", "syntax"},
		{"no UTF-8", "import os # \xff", "syntax"},
		{"a coding that hides", "# coding: utf-7\n+AGkAbQBwAG8AcgB0ACAAbwBz-", "syntax"},
		{"a coding nobody has", "# -*- coding: rot13 -*-\nimport os", "os"},
		{"a carriage return", "# x\rimport os", "os"},
		{"a vertical tab", "x = 1\vimport os", "syntax"},
		{"a separator of lines", "# x\u2028import os", ""},
		{"a form feed", "\f\fimport os", "os"},
		{"mixed tabs", "if 1:\n        x\n\timport os", "syntax"},
		{"a surrogate in an escape", `__import__("\ud800os")`, "not on the list"},
		{"a number of our own", "9\nimport os", "os"},
	} {
		report, err := a.Analyze(t.Context(), h, "python", c.code)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := ""
		switch first := p.Dangerous(report.Imports); {
		case report.Syntax != nil:
			got = "syntax"
		case report.Unread != "":
			got = "unread"
		case len(first) > 0:
			got = first[len(first)-1].Module
		case len(report.Imports) > 0:
			got = "not on the list"
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q: %.300s", c.name, got, c.want, fmt.Sprintf("%+v %+v", report, report.Syntax))
		}
		if d := judge(p, report); got == "unread" && (d.Effect != cove.Deny || d.Refusal.Rule != policy.RuleImport || !strings.Contains(d.Refusal.Reason, report.Unread)) {
			t.Errorf("%s: not refused: %+v", c.name, d)
		}
	}
	if n := h.Started(); n != 1 {
		t.Errorf("%d processes were started, want one that outlives all", n)
	}
}

// many is a line for each of so many numbers, with that and the next.
func many(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i, i+1)
	}
	return b.String()
}

func blocks(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "if 1:\n")
	}
	return b.String() + strings.Repeat(" ", depth) + "pass"
}

func TestManyImports(t *testing.T) {
	h, a, p := newHost(t), analyze.New(), rules(t, policy.Imports{})
	for name, code := range map[string]string{
		"of one module":  strings.Repeat("import math\n", 5000) + "import os",
		"of many":        many("import m%d, n%d\n", 5000) + "import os",
		"of the letters": strings.Repeat("import "+strings.Repeat("a", 5000)+"\n", 10) + "import os",
	} {
		report, err := a.Analyze(t.Context(), h, "python", code)
		if err != nil || judge(p, report).Effect != cove.Deny || len(report.Imports) > 1001 {
			t.Errorf("%s: %v, %d imports", name, err, len(report.Imports))
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	h, a := newHost(t), analyze.New()
	for code, want := range map[string]cove.CodeError{
		"x = 1\ny = = 2\n": {Name: "SyntaxError", Value: "invalid syntax", Line: 2, Traceback: "  File \"<code>\", line 2\n    y = = 2\n        ^\nSyntaxError: invalid syntax\n"},
		"if 1:\nx":         {Name: "IndentationError", Value: "expected an indented block after 'if' statement on line 1", Line: 2},
		"x = 1\x00":        {Name: "SyntaxError", Value: "source code string cannot contain null bytes"},
		"\xff":             {Name: "SyntaxError", Value: "the code is not UTF-8: byte 0 cannot be read"},
	} {
		report, err := a.Analyze(t.Context(), h, "python", code)
		if err != nil || report.Syntax == nil {
			t.Errorf("%q: %v, %+v", code, err, report)
			continue
		}
		got := *report.Syntax
		if got.Name != want.Name || !strings.HasPrefix(got.Value, want.Value[:10]) || got.Line != want.Line || want.Traceback != "" && got.Traceback != want.Traceback {
			t.Errorf("%q: %+v", code, got)
		}
		if !strings.HasSuffix(got.Traceback, got.Name+": "+got.Value+"\n") {
			t.Errorf("%q: the traceback is %q", code, got.Traceback)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	h, a := newHost(t), analyze.New()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			module := fmt.Sprintf("m%d", i)
			report, err := a.Analyze(t.Context(), h, "python", "import "+module)
			if err != nil || len(report.Imports) != 1 || report.Imports[0].Module != module {
				t.Errorf("%s: %v, %+v", module, err, report)
			}
		})
	}
	wg.Wait()
	if n := h.Started(); n > 2 {
		t.Errorf("%d processes for what two can do", n)
	}
}

func TestAProcessThatDiesIsReplaced(t *testing.T) {
	h, a := newHost(t), analyze.New()
	if _, err := a.Analyze(t.Context(), h, "python", "import os"); err != nil {
		t.Fatal(err)
	}
	h.End()
	_, err := a.Analyze(t.Context(), h, "python", "import os")
	if cove.CodeOf(err) == cove.Unavailable { // its end was not known yet
		_, err = a.Analyze(t.Context(), h, "python", "import os")
	}
	if err != nil || h.Started() != 2 {
		t.Errorf("%d processes, %v", h.Started(), err)
	}
}

func TestBrokenPlaces(t *testing.T) {
	a := analyze.New()
	h := newHost(t)
	h.refuse = errors.New("no room")
	if _, err := a.Analyze(t.Context(), h, "python", "x"); !errors.Is(err, h.refuse) {
		t.Errorf("a place that starts nothing: %v", err)
	}
	if _, err := a.Analyze(t.Context(), h, "node", "x"); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("another language: %v", err)
	}
	for name, code := range map[string]cove.Code{"/nowhere/python3": cove.Unsupported, "/bin/false": cove.Unavailable} {
		h := newHost(t)
		h.python = name
		if _, err := a.Analyze(t.Context(), h, "python", "x"); cove.CodeOf(err) != code || cove.RemedyOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheCallerMayLeave(t *testing.T) {
	h, a := newHost(t), analyze.New()
	h.python = "/bin/cat" // which says nothing of its own
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Analyze(ctx, h, "python", strings.Repeat("x", 1<<20)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
