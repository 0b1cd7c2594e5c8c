package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func TestExplainCode(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	const code = "import math\nimport os"
	for _, words := range [][]string{
		{"code", "--explain", code},
		{"code", "--explain", "-s", id, code},
		{"sandbox", "code", "--explain", id, code},
		{"sandbox", "code", "--explain", "--context", "c", id, code},
	} {
		if got, want := b.ok(words...), "imports off: allow\n  import math at line 1, column 8\n  import os at line 2, column 8: on the list\n"; got != want {
			t.Errorf("%q: got %q", words, got)
		}
	}
	s := b.run("code", "--explain", "--imports", "block", code)
	if s.code != 126 || !strings.Contains(s.out, "imports block: deny\n") || !strings.Contains(s.out, "Security policy blocked import: os") {
		t.Errorf("%+v", s)
	}
	if got := b.ok("code", "--explain", "x\nsyntax"); !strings.Contains(got, "line 2: SyntaxError: invalid syntax") {
		t.Errorf("got %q", got)
	}
	if got := b.ok("code", "--explain", "unread"); !strings.Contains(got, "not read: it is too large") {
		t.Errorf("got %q", got)
	}
	var a wire.Analysis
	if err := json.Unmarshal([]byte(b.ok("--json", "code", "--explain", code)), &a); err != nil || a.Effect != cove.Allow || len(a.Security.Imports) != 2 {
		t.Errorf("got %+v, %v", a, err)
	}
	b.fails(125, "only Python code can be looked into", "code", "--explain", "-l", "calc", "1")
	b.fails(125, "imports: ", "code", "--imports", "maybe", "1")
	if got := b.ok("code", "-l", "calc", "--trusted", "--imports", "block", "1 + 1"); got != "2\n" {
		t.Errorf("got %q", got)
	}
}
