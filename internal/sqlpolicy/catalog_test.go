package sqlpolicy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

func TestGranted(t *testing.T) {
	orders := sqlpolicy.Table{Dataset: "shop", Name: "orders", Columns: []string{"Id", "amount"}}
	items := sqlpolicy.Table{Dataset: "shop", Name: "items"}
	tickets := sqlpolicy.Table{Dataset: "desk", Name: "tickets", Columns: []string{"id"}}
	mine := sqlpolicy.Table{Name: "mine", Columns: []string{"a"}}
	cat := sqlpolicy.Catalog{Dataset: "shop", Tables: []sqlpolicy.Table{orders, items, tickets, mine, {Dataset: "pg_catalog", Name: "x"}, {Dataset: "Main", Name: "y"}}}
	with := func(t sqlpolicy.Table, columns ...string) sqlpolicy.Table {
		t.Columns = columns
		return t
	}
	for _, c := range []struct {
		name  string
		grant cove.DataGrant
		want  []sqlpolicy.Table
	}{
		{"everything", cove.DataGrant{}, []sqlpolicy.Table{orders, items, tickets, mine}},
		{"a dataset", cove.DataGrant{Datasets: []string{"desk"}}, []sqlpolicy.Table{tickets, mine}},
		{"no dataset", cove.DataGrant{Datasets: []string{}}, []sqlpolicy.Table{mine}},
		{"a table", cove.DataGrant{Tables: []string{"shop.items"}}, []sqlpolicy.Table{items, mine}},
		{"a table of another dataset", cove.DataGrant{Datasets: []string{"desk"}, Tables: []string{"shop.items"}}, []sqlpolicy.Table{mine}},
		{"columns", cove.DataGrant{Columns: map[string][]string{"shop.orders": {"id", "nothing"}}}, []sqlpolicy.Table{with(orders, "Id"), items, tickets, mine}},
		{"columns in another case", cove.DataGrant{Columns: map[string][]string{"SHOP.Orders": {"ID"}}}, []sqlpolicy.Table{with(orders, "Id"), items, tickets, mine}},
		{"columns that are not known", cove.DataGrant{Columns: map[string][]string{"shop.items": {"sku"}}}, []sqlpolicy.Table{orders, with(items, "sku"), tickets, mine}},
		{"no column", cove.DataGrant{Columns: map[string][]string{"shop.orders": {}, "shop.items": nil, "desk.tickets": {"subject"}}}, []sqlpolicy.Table{mine}},
		{"columns of no dataset", cove.DataGrant{Columns: map[string][]string{"mine": {}}}, []sqlpolicy.Table{orders, items, tickets, mine}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cat.Granted(c.grant)
			if diff := cmp.Diff(sqlpolicy.Catalog{Dataset: "shop", Tables: c.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNames: the same name means another table where another dataset is asked.
func TestNames(t *testing.T) {
	cat := sqlpolicy.Catalog{Tables: []sqlpolicy.Table{
		{Dataset: "shop", Name: "orders"}, {Dataset: "desk", Name: "orders"}, {Name: "orders"}, {Dataset: "desk", Name: "sqlite_master"},
	}}
	for _, c := range []struct{ dataset, sql, want string }{
		{"", "SELECT * FROM orders", "allowed orders()"},
		{"", "SELECT * FROM main.orders", "allowed orders()"},
		{"", "SELECT * FROM shop.orders", "allowed shop.orders()"},
		{"desk", "SELECT * FROM orders", "allowed desk.orders()"},
		{"desk", "SELECT * FROM main.orders", "allowed orders()"},
		{"desk", "SELECT * FROM desk.sqlite_master", "allowed desk.sqlite_master()"},
		{"desk", "SELECT * FROM sqlite_master", `sql.catalog 1:15 "sqlite_master" sqlite_master is the engine's own; ask for the schema of a dataset instead`},
		{"main", "SELECT * FROM orders", `sql.table 1:15 "orders" there is no table orders; there are desk.orders, desk.sqlite_master, main.orders, shop.orders`},
	} {
		cat.Dataset = c.dataset
		v, _ := judge(t, c.sql, cat, cove.DataGrant{})
		if got := say(v); got != c.want {
			t.Errorf("%s in %q: got\n%s\nwant\n%s", c.sql, c.dataset, got, c.want)
		}
	}
	v, _ := judge(t, "SELECT * FROM nowhere", sqlpolicy.Catalog{}, cove.DataGrant{})
	if got, want := say(v), `sql.table 1:15 "nowhere" there is no table nowhere, and no other`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	many := sqlpolicy.Catalog{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		many.Tables = append(many.Tables, sqlpolicy.Table{Dataset: "x", Name: name})
	}
	v, _ = judge(t, "SELECT * FROM nowhere", many, cove.DataGrant{})
	if got, want := v.Refusal.Reason, "there is no table nowhere; there are x.a, x.b, x.c, x.d, x.e, x.f, x.g, x.h and 2 more"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
