package sqlpolicy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

// shop is what there is to ask in the tests.
var shop = sqlpolicy.Catalog{
	Dataset: "ecommerce",
	Tables: []sqlpolicy.Table{
		{Dataset: "ecommerce", Name: "orders", Columns: []string{"id", "status", "customer", "amount", "created", "tags", "data"}},
		{Dataset: "ecommerce", Name: "order_items", Columns: []string{"order_id", "sku", "quantity", "price"}},
		{Dataset: "ecommerce", Name: "inventory", Columns: []string{"sku", "stock", "cost"}},
		{Dataset: "support", Name: "tickets", Columns: []string{"id", "order_id", "subject", "opened"}},
		{Dataset: "support", Name: "2024 sales", Columns: []string{"id", "Total Sum"}},
		{Name: "mine", Columns: []string{"a", "b"}},
	},
}

// dark is the same for who has not looked into the files.
var dark = func() sqlpolicy.Catalog {
	out := sqlpolicy.Catalog{Dataset: shop.Dataset}
	for _, t := range shop.Tables {
		out.Tables = append(out.Tables, sqlpolicy.Table{Dataset: t.Dataset, Name: t.Name})
	}
	return out
}()

// grants are those that the corpora name.
var grants = map[string]cove.DataGrant{
	"all": {},
	"narrow": {
		Tables:  []string{"ecommerce.orders", "ecommerce.order_items"},
		Columns: map[string][]string{"ecommerce.orders": {"id", "status"}},
	},
	"support": {Datasets: []string{"support"}},
}

// entry is one statement of a corpus, with what was said about it.
type entry struct {
	grant, said, sql string
}

// corpus reads a file of entries: a line "== GRANT WHAT WAS SAID" and the statement
// behind it.
func corpus(t *testing.T, name string) []entry {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	for i, block := range strings.Split("\n"+string(data), "\n== ") {
		if i == 0 {
			continue
		}
		head, sql, _ := strings.Cut(block, "\n")
		grant, said, _ := strings.Cut(head, " ")
		if _, ok := grants[grant]; !ok {
			t.Fatalf("%s: there is no grant %q", name, grant)
		}
		out = append(out, entry{grant: grant, said: said, sql: strings.TrimSuffix(sql, "\n")})
	}
	return out
}

// compare judges every entry and compares what is said with what the file says.
func compare(t *testing.T, name string, least int, check func(t *testing.T, v sqlpolicy.Verdict)) {
	entries := corpus(t, name)
	if len(entries) < least {
		t.Errorf("%s has %d statements, want %d and more", name, len(entries), least)
	}
	var file strings.Builder
	for _, e := range entries {
		v, syntax := judge(t, e.sql, shop, grants[e.grant])
		if syntax {
			t.Errorf("%s: the parser does not take\n%s", name, e.sql)
			continue
		}
		got := say(v)
		if !*update && got != e.said {
			t.Errorf("%s\n%s\nis judged\n%s\nwant\n%s", name, e.sql, got, e.said)
		}
		check(t, v)
		fmt.Fprintf(&file, "== %s %s\n%s\n", e.grant, got, e.sql)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(name, []byte(file.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// say is a verdict in one line.
func say(v sqlpolicy.Verdict) string {
	if r := v.Refusal; r != nil {
		return fmt.Sprintf("%s %d:%d %q %s", r.Rule, r.Line, r.Column, r.Word, r.Reason)
	}
	uses := []string{"allowed"}
	for _, u := range v.Tables {
		uses = append(uses, fmt.Sprintf("%s(%s)", sqlpolicy.Table{Dataset: u.Dataset, Name: u.Table}, strings.Join(u.Columns, ",")))
	}
	return strings.Join(uses, " ")
}

func TestHonest(t *testing.T) {
	compare(t, "testdata/honest.txt", 60, func(t *testing.T, v sqlpolicy.Verdict) {
		if v.Refusal != nil {
			t.Errorf("refused: %s", say(v))
		}
	})
}

func TestRefused(t *testing.T) {
	rules := map[string]bool{}
	compare(t, "testdata/refused.txt", 60, func(t *testing.T, v sqlpolicy.Verdict) {
		if v.Refusal == nil {
			t.Errorf("allowed: %s", say(v))
			return
		}
		rules[v.Refusal.Rule] = true
	})
	for _, rule := range []string{
		sqlpolicy.RuleOneStatement, sqlpolicy.RuleSelectOnly, sqlpolicy.RuleText, sqlpolicy.RuleNode, sqlpolicy.RuleFunction, sqlpolicy.RuleTableFunction,
		sqlpolicy.RuleTable, sqlpolicy.RuleColumn, sqlpolicy.RuleCatalog, sqlpolicy.RuleParameter, sqlpolicy.RuleSize,
	} {
		if !rules[rule] && rule != sqlpolicy.RuleText && rule != sqlpolicy.RuleSize {
			t.Errorf("no statement is refused by %s", rule)
		}
	}
}

func TestEvasion(t *testing.T) {
	compare(t, "testdata/evasion.txt", 40, func(*testing.T, sqlpolicy.Verdict) {})
}

func TestDecision(t *testing.T) {
	v, _ := judge(t, "SELECT status, count(*) FROM orders GROUP BY 1", shop, grants["all"])
	want := &cove.RunDecision{Allowed: true, Tables: []string{"ecommerce.orders"}, Columns: []string{"ecommerce.orders.status"}}
	if diff := cmp.Diff(want, v.Decision()); diff != "" {
		t.Error(diff)
	}
	v, _ = judge(t, "SELECT * FROM nowhere", shop, grants["all"])
	if d := v.Decision(); d.Allowed || d.Refusal != v.Refusal || d.Tables != nil {
		t.Errorf("got %+v", d)
	}
}

// TestUnknownColumns: without knowing what the tables hold, the corpora are judged
// in the same way, except that nothing is known of what a star stands for.
func TestUnknownColumns(t *testing.T) {
	for _, name := range []string{"testdata/honest.txt", "testdata/refused.txt", "testdata/evasion.txt"} {
		for _, e := range corpus(t, name) {
			v, _ := judge(t, e.sql, dark, grants[e.grant])
			got, want := say(v), e.said
			if strings.HasPrefix(got, "allowed") && strings.HasPrefix(want, "allowed") {
				continue
			}
			// Where a table shows all of its columns, it may have the one that is meant.
			if strings.HasPrefix(want, sqlpolicy.RuleColumn) && strings.Contains(e.sql, "order_items") {
				continue
			}
			if got != want {
				t.Errorf("%s\nis judged\n%s\nwant\n%s", e.sql, got, want)
			}
		}
	}
}
