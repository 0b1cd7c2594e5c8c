package sqlpolicy_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

// TestNotSelect finds the word that makes a text no SELECT. No parser is asked:
// it has no place for it.
func TestNotSelect(t *testing.T) {
	for _, c := range []struct {
		sql, word    string
		line, column int
	}{
		{"DROP TABLE x", "DROP", 1, 1},
		{"  drop TABLE x", "drop", 1, 3},
		{"-- SELECT\n/* a ; b /* c */ */ COPY x TO 'y'", "COPY", 2, 21},
		{"SELECT ';'; SELECT $$ ; $$; SELECT \";\";\nVACUUM", "VACUUM", 2, 1},
		{"SELECT $tag$ ; $$ ; $tag$; LOAD x", "LOAD", 1, 28},
		{"SELECT 'it''s ; ok'; SET x = 1", "SET", 1, 22},
		{"(((DELETE FROM x)))", "DELETE", 1, 4},
		{"WITH a AS (SELECT 1) PIVOT b ON c USING sum(d)", "PIVOT", 1, 22},
		{"FROM (PIVOT b ON c USING sum(d))", "PIVOT", 1, 7},
		{"SELECT 1 /* never ends; DROP TABLE x", "SELECT", 1, 1},
		{"SELECT 'never ends; DROP TABLE x", "SELECT", 1, 1},
		{"SELECT $a$ never ends; DROP TABLE x", "SELECT", 1, 1},
		{"WITH x AS (SELECT 1) SELECT 1", "WITH", 1, 1},
		{strings.Repeat("é", 100) + " x", strings.Repeat("é", 60) + "…", 1, 1},
		{"", "", 0, 0},
	} {
		r := sqlpolicy.NotSelect(c.sql)
		if r.Rule != sqlpolicy.RuleSelectOnly || r.Word != c.word || r.Line != c.line || r.Column != c.column || r.Reason == "" {
			t.Errorf("%q: got %+v, want %q at %d:%d", c.sql, r, c.word, c.line, c.column)
		}
	}
	if r := sqlpolicy.NotSelect("DROP \xff"); r.Rule != sqlpolicy.RuleText {
		t.Errorf("got %+v", r)
	}
	if r := sqlpolicy.TooLarge(); r.Rule != sqlpolicy.RuleSize || r.Reason == "" {
		t.Errorf("got %+v", r)
	}
}

// TestShown: what a refusal repeats of a text is short, and nothing that a terminal
// obeys.
func TestShown(t *testing.T) {
	for _, c := range []struct{ sql, word string }{
		{"SELECT * FROM \"a\x1b[31m\nb\u202ec\"", "a\ufffd[31m\ufffdb\ufffdc"},
		{"SELECT \"" + strings.Repeat("f", 200) + "\"()", strings.Repeat("f", 120) + "…"},
	} {
		v, _ := judge(t, c.sql, shop, grants["all"])
		if r := v.Refusal; r == nil || r.Word != c.word || r.Line != 1 || strings.ContainsAny(r.Reason, "\x1b\n") || len(r.Reason) > 400 {
			t.Errorf("%q: got %+v", c.sql, r)
		}
	}
}
