package sqlpolicy_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

// canary is in every table that the grant of these tests does not show, and in no
// other.
const canary = "c4n4ry"

// half is a grant of some tables with all of their columns, so that whatever of the
// others comes out got past the policy: here all of them are loaded.
var half = cove.DataGrant{Tables: []string{"ecommerce.orders", "ecommerce.order_items", "support.2024 sales"}}

// loaded starts an engine of its own with every table of the shop in it.
func loaded(t testing.TB) *engine {
	t.Helper()
	exe := os.Getenv("COVE_TEST_DUCKDB")
	if exe == "" {
		t.Skip("needs the DuckDB executable; COVE_TEST_DUCKDB names it")
	}
	dir := t.TempDir()
	var tables []ask.Table
	for _, table := range shop.Tables {
		cell := "1"
		if table.Dataset != "" && !slices.Contains(half.Tables, table.String()) {
			cell = canary
		}
		row := strings.TrimSuffix(strings.Repeat(cell+",", len(table.Columns)), ",")
		path := filepath.Join(dir, table.String()+".csv")
		if err := os.WriteFile(path, []byte(strings.Join(table.Columns, ",")+"\n"+row+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, ask.Table{Schema: table.Dataset, Name: table.Name, Path: path, Format: ask.CSV})
	}
	h, err := startEngine(exe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.in.Close()
		_ = h.cmd.Wait()
	})
	answer, err := h.ask(ask.Request{Verb: ask.VerbLoad, Load: &ask.Load{Tables: tables}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range answer.Tables {
		if l.Problem != "" {
			t.Fatalf("%s: %s", l.Name, l.Problem)
		}
	}
	return h
}

// try asks the engine what the policy lets pass, and looks for what it must not
// give. It reports whether the statement was allowed.
func try(t *testing.T, h *engine, sql string) bool {
	t.Helper()
	p, err := h.parse(sql)
	if err != nil {
		t.Fatalf("parse %q: %v", sql, err)
	}
	v, syntax := verdict(p, sql, shop, half)
	if syntax || v.Refusal != nil {
		return false
	}
	for _, u := range v.Tables {
		name := sqlpolicy.Table{Dataset: u.Dataset, Name: u.Table}.String()
		if u.Dataset != "" && !slices.Contains(half.Tables, name) {
			t.Errorf("%q names %s", sql, name)
		}
	}
	if strings.Contains(sql, canary) {
		return true
	}
	answer, err := h.ask(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: sql, Schema: "ecommerce", MaxRows: 100, MaxBytes: 1 << 16}})
	var fault *ask.Fault
	switch {
	case errors.As(err, &fault):
		if fault.Kind == ask.NotSelect || fault.Kind == ask.NotOne || fault.Kind == ask.Syntax {
			t.Errorf("%q was allowed, and the engine does not even run it: %v", sql, err)
		}
	case err != nil:
		t.Fatalf("query %q: %v", sql, err)
	default:
		if out, _ := json.Marshal(answer); strings.Contains(string(out), canary) {
			t.Errorf("%q gave what is not granted: %.300s", sql, out)
		}
	}
	return true
}

// TestCanary asks an engine that holds everything only what the policy allows to a
// key with half of the tables: the corpora, and statements that are put together
// from their words.
func TestCanary(t *testing.T) {
	h := loaded(t)
	var statements []string
	allowed := 0
	for _, name := range []string{"testdata/honest.txt", "testdata/refused.txt", "testdata/evasion.txt"} {
		for _, e := range corpus(t, name) {
			if try(t, h, e.sql) {
				allowed++
			}
			statements = append(statements, e.sql)
		}
	}
	if allowed < 60 {
		t.Errorf("only %d statements were allowed", allowed)
	}
	random := rand.New(rand.NewPCG(8, 38))
	for range 400 {
		try(t, h, splice(random, statements))
	}
}

// splice puts a statement together: one of the corpora, with a table or a word of it
// replaced by a query or a word of another.
func splice(random *rand.Rand, statements []string) string {
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	words := strings.Fields(pick(statements))
	if len(words) < 2 {
		return strings.Join(words, " ")
	}
	at := 1 + random.IntN(len(words)-1)
	switch other := pick(statements); random.IntN(4) {
	case 0:
		words[at] = "(" + other + ")"
	case 1:
		words[at] = pick([]string{"inventory", "support.tickets", "orders", "(SELECT * FROM inventory)", "ecommerce.inventory"})
	case 2:
		words = append(words[:at], strings.Fields(other)...)
	case 3:
		words = append([]string{"WITH inventory AS (" + other + ")"}, words...)
	}
	return strings.Join(words, " ")
}
