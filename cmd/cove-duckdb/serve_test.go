//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

func TestLoadAndQuery(t *testing.T) {
	orders := table(t, "orders.csv", "id,status,amount\n1,paid,10.5\n2,open,\n3,paid,7\n")
	orders.Schema = "shop"
	people := table(t, "people.json", `{"name": "Ada", "tags": ["a", "b"]}`+"\n"+`{"name": "Bob", "tags": []}`+"\n")
	people.Schema = "my crew"
	p := openPeer(t)
	got := p.ask(ask.Request{Verb: ask.VerbLoad, Load: &ask.Load{Tables: []ask.Table{orders, people}}})
	want := []ask.Loaded{
		{Schema: "shop", Name: "orders", Rows: 3, Columns: []ask.Column{{Name: "id", Type: "BIGINT"}, {Name: "status", Type: "VARCHAR"}, {Name: "amount", Type: "DOUBLE"}}},
		{Schema: "my crew", Name: "people", Rows: 2, Columns: []ask.Column{{Name: "name", Type: "VARCHAR"}, {Name: "tags", Type: "VARCHAR[]"}}},
	}
	if diff := cmp.Diff(want, got.Tables); diff != "" || got.Fault != nil {
		t.Fatal(diff, got.Fault)
	}
	if diff := cmp.Diff([]string{`["open",1]`, `["paid",2]`}, p.rows("SELECT status, count(*) FROM shop.orders GROUP BY 1 ORDER BY 1")); diff != "" {
		t.Error(diff)
	}
	for schema, sql := range map[string]string{"shop": "FROM orders SELECT count(*)", "my crew": "FROM people, shop.orders SELECT count(*)", "SHOP": "SELECT count(*) FROM orders"} {
		if a := p.ask(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: sql, Schema: schema, MaxRows: 1, MaxBytes: 100}}); a.Fault != nil {
			t.Errorf("%s: %v", schema, a.Fault)
		}
	}
	if a := p.query("FROM orders"); a.Fault == nil || a.Fault.Kind != ask.Failed || a.Fault.Column != 6 {
		t.Errorf("a table of another schema: %+v", a.Fault)
	}
	if a := p.ask(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: "SELECT 1", Schema: "none", MaxRows: 1, MaxBytes: 100}}); a.Fault == nil || a.Fault.Kind != ask.BadRequest {
		t.Errorf("no schema: %+v", a.Fault)
	}
}

func TestParse(t *testing.T) {
	p := openPeer(t)
	parse := func(sql string) *ask.Answer {
		return p.ask(ask.Request{Verb: ask.VerbParse, Parse: &ask.Parse{SQL: sql}})
	}
	for sql, n := range map[string]int{"": 0, " ;; ": 0, "SELECT 1": 1, "SELECT 1;": 1, "SELECT a FROM t; FROM x.y": 2, "SELECT 'it''s'": 1, "DESCRIBE t": 1} {
		if a := parse(sql); a.Fault != nil || len(a.Tree.Statements) != n {
			t.Errorf("%s: %+v", sql, a)
		}
	}
	for sql, want := range map[string]ask.Fault{
		"SELEC 1":                  {Kind: ask.Syntax, Line: 1, Column: 1},
		"SELECT 'ü',\n FROM WHERE": {Kind: ask.Syntax, Line: 2, Column: 7, Offset: 19},
		"DROP TABLE t":             {Kind: ask.NotSelect},
		"SELECT 1; DROP TABLE t":   {Kind: ask.NotSelect},
	} {
		a := parse(sql)
		if a.Fault == nil {
			t.Errorf("%s: no fault", sql)
			continue
		}
		want.Message = a.Fault.Message
		if diff := cmp.Diff(want, *a.Fault); diff != "" {
			t.Errorf("%s: %s", sql, diff)
		}
	}
}

// What a query may call is decided by a list that was made of this one.
func TestFunctionsAreKnown(t *testing.T) {
	const golden = "../../internal/sqlpolicy/testdata/engine_functions.txt"
	a := openPeer(t).ask(ask.Request{Verb: ask.VerbFunctions})
	if a.Fault != nil {
		t.Fatal(a.Fault)
	}
	var got strings.Builder
	for _, f := range a.Functions {
		fmt.Fprintf(&got, "%s %s\n", f.Kind, f.Name)
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the engine has other functions than %s says, which cove-duckdb functions makes anew: %s", golden, diff)
	}
}
