package sqlpolicy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

// spoil returns trees that are like a good one but for one part, which is nothing
// that any parser has said: a field, a class, a kind, or a node where none belongs.
func spoil(t *testing.T, tree json.RawMessage, wanted func(what string) bool, each func(what string, spoilt json.RawMessage)) {
	t.Helper()
	var root any
	dec := json.NewDecoder(strings.NewReader(string(tree)))
	dec.UseNumber()
	if err := dec.Decode(&root); err != nil {
		t.Fatal(err)
	}
	emit := func(what string) {
		if !wanted(what) {
			return
		}
		data, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		each(what, data)
	}
	var visit func(path string, v any)
	visit = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			v["surprise"] = nil
			emit(path + ": a field that nobody knows")
			delete(v, "surprise")
			for key, old := range v {
				v[key] = map[string]any{"class": "SURPRISE", "type": "SURPRISE"}
				emit(path + "." + key + ": a node that nobody knows")
				if _, text := old.(string); text && slices.Contains([]string{"class", "type", "id", "join_type", "setop_type", "show_type", "start", "subquery_type"}, key) {
					v[key] = "SURPRISE"
					emit(path + "." + key + ": a word that nobody knows")
				}
				v[key] = old
				visit(path+"."+key, old)
			}
		case []any:
			for i, old := range v {
				v[i] = map[string]any{"class": "SURPRISE", "type": "SURPRISE"}
				emit(path + "[]: a node that nobody knows")
				v[i] = old
				visit(path+"[]", old)
			}
		}
	}
	visit("", root)
}

// TestUnknown spoils every part of every honest tree: nothing of it is let pass.
func TestUnknown(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range corpus(t, "testdata/honest.txt") {
		for _, tree := range parse(t, e.sql).Statements {
			spoil(t, tree, func(what string) bool { return !seen[what] }, func(what string, spoilt json.RawMessage) {
				seen[what] = true
				if v := sqlpolicy.Judge([]json.RawMessage{spoilt}, e.sql, shop, grants[e.grant]); v.Refusal == nil {
					t.Errorf("%s\nallowed with %s", e.sql, what)
				}
			})
		}
	}
	if len(seen) < 2000 {
		t.Errorf("trees were spoilt in only %d ways", len(seen))
	}
}

// TestBounds has statements and trees that are too long, too deep or no text.
func TestBounds(t *testing.T) {
	one := parse(t, "SELECT 1").Statements
	deep := func(n int) json.RawMessage {
		inner := `{"class":"CONSTANT","type":"VALUE_CONSTANT","value":{"type":{"id":"INTEGER","type_info":null},"is_null":false,"value":1}}`
		return json.RawMessage(`{"node":{"type":"SELECT_NODE","select_list":[` +
			strings.Repeat(`{"class":"OPERATOR","type":"OPERATOR_NOT","children":[`, n) + inner + strings.Repeat(`]}`, n) + `],"from_table":{"type":"EMPTY"}}}`)
	}
	nested := func(n int) json.RawMessage {
		return json.RawMessage(strings.Repeat(`{"node":{"type":"SELECT_NODE","select_list":[],"from_table":{"type":"SUBQUERY","subquery":`, n) +
			`{"node":{"type":"SELECT_NODE","from_table":{"type":"EMPTY"}}}` + strings.Repeat(`}}}`, n))
	}
	wide := json.RawMessage(`{"node":{"type":"SELECT_NODE","from_table":{"type":"EMPTY"},"select_list":[` + strings.Repeat(`{"class":"STAR","type":"STAR"},`, 100_001) + `{"class":"STAR","type":"STAR"}]}}`)
	stars := json.RawMessage(`{"node":{"type":"SELECT_NODE","from_table":{"type":"BASE_TABLE","table_name":"big"},"select_list":[` + strings.Repeat(`{"class":"STAR","type":"STAR"},`, 1000) + `{"class":"STAR","type":"STAR"}]}}`)
	big := sqlpolicy.Catalog{Tables: []sqlpolicy.Table{{Name: "big"}}}
	for i := range 16_000 {
		big.Tables[0].Columns = append(big.Tables[0].Columns, "c"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/182))
	}
	for _, c := range []struct {
		name, sql string
		trees     []json.RawMessage
		rule      string
	}{
		{"long text", "SELECT 1" + strings.Repeat(" ", 1<<20), one, sqlpolicy.RuleSize},
		{"long tree", "SELECT 1", []json.RawMessage{json.RawMessage(strings.Repeat(" ", 4<<20) + "{}")}, sqlpolicy.RuleSize},
		{"no text", "SELECT '\xff'", one, sqlpolicy.RuleText},
		{"a NUL", "SELECT 1\x00; DROP TABLE x", one, sqlpolicy.RuleText},
		{"deep", "SELECT 1", []json.RawMessage{deep(1300)}, sqlpolicy.RuleSize},
		{"not too deep", "SELECT 1", []json.RawMessage{deep(1000)}, ""},
		{"queries in queries", "SELECT 1", []json.RawMessage{nested(100)}, sqlpolicy.RuleSize},
		{"fewer queries in queries", "SELECT 1", []json.RawMessage{nested(99)}, ""},
		{"wide", "SELECT 1", []json.RawMessage{wide}, sqlpolicy.RuleSize},
		{"many stars of many columns", "SELECT 1", []json.RawMessage{stars}, sqlpolicy.RuleSize},
		{"no tree", "SELECT 1", []json.RawMessage{json.RawMessage(`{`)}, sqlpolicy.RuleNode},
		{"another tree", "SELECT 1", []json.RawMessage{json.RawMessage(`[]`)}, sqlpolicy.RuleNode},
		{"an empty tree", "SELECT 1", []json.RawMessage{json.RawMessage(`{}`)}, sqlpolicy.RuleNode},
		{"a tree of nothing", "SELECT 1", []json.RawMessage{json.RawMessage(`null`)}, sqlpolicy.RuleNode},
		{"no query", "SELECT 1", []json.RawMessage{json.RawMessage(`{"node":null}`)}, sqlpolicy.RuleNode},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := sqlpolicy.Judge(c.trees, c.sql, big, cove.DataGrant{}).Refusal
			switch {
			case c.rule == "" && r != nil:
				t.Errorf("refused: %+v", r)
			case c.rule != "" && (r == nil || r.Rule != c.rule || len(r.Reason) > 400):
				t.Errorf("got %+v, want %s", r, c.rule)
			}
		})
	}
}
