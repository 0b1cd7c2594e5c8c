package analyze_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/analyze"
	"github.com/cove-sandbox/cove/internal/pypolicy/fact"
)

func TestFacts(t *testing.T) {
	h, a := newHost(t), analyze.New()
	const code = "import numpy.random as r\nfrom datetime import date\nx = r.normal(1, size=2)\nprint(pd)\ndf.to_csv(sep=';', *y)\nclass A:\n  def __init__(self, __k__=1): self._n = date.today\n"
	got, err := a.Facts(t.Context(), h, code)
	if err != nil {
		t.Fatal(err)
	}
	want := &fact.Report{Facts: []fact.Fact{
		{Kind: fact.Import, Of: "numpy.random", Line: 1, Column: 8},
		{Kind: fact.From, Of: "datetime", Name: "date", Line: 2, Column: 22},
		{Kind: fact.Name, Name: "x", Line: 3, Column: 1},
		{Kind: fact.Name, Name: "r", Of: "numpy.random", Line: 3, Column: 5},
		{Kind: fact.Attribute, Name: "normal", Of: "numpy.random", Line: 3, Column: 7, Last: true, Called: true, Args: 1, Keywords: []string{"size"}},
		{Kind: fact.Name, Name: "print", Builtin: true, Line: 4, Column: 1},
		{Kind: fact.Name, Name: "pd", Of: "pandas", Last: true, Line: 4, Column: 7},
		{Kind: fact.Name, Name: "df", Line: 5, Column: 1},
		{Kind: fact.Attribute, Name: "to_csv", Line: 5, Column: 4, Last: true, Called: true, Keywords: []string{"sep"}, Spread: true},
		{Kind: fact.Name, Name: "y", Line: 5, Column: 21},
		{Kind: fact.Define, Name: "__init__", Line: 7, Column: 3},
		{Kind: fact.Special, Name: "__k__", Line: 7, Column: 22},
		{Kind: fact.Name, Name: "self", Line: 7, Column: 32},
		{Kind: fact.Attribute, Name: "_n", Own: true, Last: true, Line: 7, Column: 37},
		{Kind: fact.Name, Name: "date", Of: "datetime.date", Line: 7, Column: 42},
		{Kind: fact.Attribute, Name: "today", Of: "datetime.date", Last: true, Line: 7, Column: 47},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHostileCodeForFacts: whatever is sent, there is an answer, and what could not be
// read is said not to be.
func TestHostileCodeForFacts(t *testing.T) {
	h, a := newHost(t), analyze.New()
	for _, c := range []struct{ name, code, want string }{
		{"nothing", "", "none"},
		{"a mistake", "x = = 1", "syntax"},
		{"no UTF-8", "\xff", "syntax"},
		{"many names", many("v%d = v%d\n", 300), "facts"},
		{"too many names", many("v%d, w%d\n", 3000), "unread"},
		{"the same again and again", strings.Repeat("print(orders.shape)\n", 5000), "facts"},
		{"many attributes", "a" + strings.Repeat(".b", 100_000), "unread"},
		{"sums", "1" + strings.Repeat("+1", 100_000), "unread"},
		{"a long name", strings.Repeat("x", 100_000) + " = 1", "facts"},
		{"many keywords", "f.g(" + many("k%d=k%d, ", 300) + ")", "facts"},
		{"a long query", "df.query('" + strings.Repeat("a and ", 1000) + "a')", "facts"},
		{"many queries", many("df.query('a%d > b%d')\n", 1000), "facts"},
		{"a deep query", "df.query('" + strings.Repeat("-", 50_000) + "1')", "unread"},
		{"a query in a query", `df.query("@df.query('@df.query(1)')")`, "facts"},
		{"surrogates", `x = "\ud800__class__"`, "facts"},
		{"a surrogate for apply", `df.apply("\ud800")`, "facts"},
	} {
		r, err := a.Facts(t.Context(), h, c.code)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := "none"
		switch {
		case r.Syntax != nil:
			got = "syntax"
		case r.Unread != "":
			got = "unread"
		case len(r.Facts) > 0:
			got = "facts"
		}
		if got != c.want || len(r.Facts) > 4000 {
			t.Errorf("%s: got %s and %d facts: %.300s", c.name, got, len(r.Facts), fmt.Sprintf("%+v", r))
		}
	}
	if n := h.Started(); n != 1 {
		t.Errorf("%d processes were started, want one that outlives all", n)
	}
}

func TestFactsAreNotBelieved(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		answer string
		taken  bool
	}{
		"nothing at all":    {`{}`, false},
		"another kind":      {`{"facts": 7}`, false},
		"no JSON":           {`hello`, false},
		"too many":          {`{"facts": [` + strings.Repeat(`{},`, 4000) + `{}]}`, false},
		"too many keywords": {`{"facts": [{"keywords": [` + strings.Repeat(`"k",`, 64) + `"k"]}]}`, false},
		"long words":        {`{"facts": [{"kind": "` + long + `", "name": "` + long + `", "of": "` + long + `", "keywords": ["` + long + `"], "line": -1, "column": -2, "args": -3}]}`, true},
	} {
		file := filepath.Join(t.TempDir(), "answer")
		if err := os.WriteFile(file, []byte(c.answer), 0o600); err != nil {
			t.Fatal(err)
		}
		h := liar(t, "read -r n what; test \"$what\" = facts || exit 1; head -c \"$n\" >/dev/null; wc -c <"+file+"; cat "+file+"; cat >/dev/null")
		r, err := analyze.New().Facts(t.Context(), h, "x")
		if !c.taken {
			if cove.CodeOf(err) != cove.Unavailable || r != nil {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		f := r.Facts[0]
		if len(f.Kind) > 256 || len(f.Name) > 256 || len(f.Of) > 256 || len(f.Keywords[0]) > 256 || f.Line != 0 || f.Column != 0 || f.Args != 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
