package sqlpolicy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

// FuzzJudge gives it trees that no parser has written, and texts that have nothing
// to do with them. It must not fall over, must name nothing that is not granted, and
// a refusal must be one that can be shown.
func FuzzJudge(f *testing.F) {
	trees, err := treesOnce()
	if err != nil {
		f.Fatal(err)
	}
	for sql, p := range trees {
		for _, tree := range p.Statements {
			f.Add([]byte(tree), sql)
		}
	}
	f.Fuzz(func(t *testing.T, tree []byte, sql string) {
		v := sqlpolicy.Judge([]json.RawMessage{tree}, sql, shop, half)
		checkRefusal(t, v, sql)
		checkRefusal(t, sqlpolicy.Verdict{Refusal: sqlpolicy.NotSelect(sql)}, sql)
		for _, u := range v.Tables {
			name := sqlpolicy.Table{Dataset: u.Dataset, Name: u.Table}.String()
			if u.Dataset != "" && !slices.Contains(half.Tables, name) {
				t.Errorf("it names %s", name)
			}
		}
	})
}

// checkRefusal looks at what a caller is shown: a rule, a sentence, and a place that
// is in the text.
func checkRefusal(t *testing.T, v sqlpolicy.Verdict, sql string) {
	t.Helper()
	r := v.Refusal
	if r == nil {
		return
	}
	if !strings.HasPrefix(r.Rule, "sql.") || r.Reason == "" || len(r.Word) > 130 || v.Tables != nil {
		t.Errorf("got %+v", r)
	}
	if r.Line == 0 {
		return
	}
	lines := strings.SplitAfter(sql, "\n")
	if r.Line > len(lines) || r.Column < 1 || r.Column > len(lines[r.Line-1]) {
		t.Errorf("%d:%d is not in %q", r.Line, r.Column, sql)
	}
}

// FuzzText gives texts to the parser, and what is allowed to an engine that holds
// more than is granted.
func FuzzText(f *testing.F) {
	h := loaded(f)
	trees, err := treesOnce()
	if err != nil {
		f.Fatal(err)
	}
	for sql := range trees {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 4096 || strings.ContainsRune(sql, 0) {
			return
		}
		try(t, h, strings.ToValidUTF8(sql, "?"))
	})
}
