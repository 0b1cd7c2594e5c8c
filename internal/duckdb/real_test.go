package duckdb_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
)

// real opens DuckDB itself, on this host, without tables.
func real(t *testing.T) *duckdb.Helper {
	t.Helper()
	tool := realTool(t)
	h, err := duckdb.New(tool, duckdb.Limits{}).Open(t.Context(), newHost(t), duckdb.Options{
		Path: filepath.Join(tool.Dir, tool.Name), Memory: 512 * cove.MiB, Threads: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background()) })
	return h
}

// csv is a file, as a table.
func csv(t *testing.T, text string) []duckdb.Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), "orders.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []duckdb.Table{{Schema: "shop", Name: "orders", Path: path, Format: duckdb.CSV, Stamp: "1"}}
}

const fewOrders = "id,status,amount\n1,open,2.5\n2,paid,7.25\n3,paid,\n"

// endless does not end, and needs no more memory the longer it takes.
const endless = "SELECT count(*) FROM range(9000000000000000) r(i) WHERE i % 7 = 8"

func ask1(sql string) duckdb.Question {
	return duckdb.Question{SQL: sql, Schema: "shop", MaxRows: 100, MaxBytes: 64 << 10}
}

func TestRealQuestions(t *testing.T) {
	h := real(t)
	described, err := h.Describe(t.Context(), csv(t, fewOrders), 1)
	if err != nil || described[0].Rows != 3 || len(described[0].Columns) != 3 || string(described[0].Samples[0]) != `[1,"open",2.5]` {
		t.Errorf("the description: %+v, %v", described, err)
	}
	got, err := h.Load(t.Context(), csv(t, fewOrders))
	if err != nil || got[0].Rows != 3 {
		t.Fatalf("the tables: %+v, %v", got, err)
	}
	rows, err := h.Query(t.Context(), ask1("SELECT status, count(*) AS n, max(amount) AS top FROM orders GROUP BY 1 ORDER BY 1"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range rows.Rows {
		lines = append(lines, string(r))
	}
	want := []duckdb.Column{{Name: "status", Type: "VARCHAR"}, {Name: "n", Type: "BIGINT"}, {Name: "top", Type: "DOUBLE"}}
	if text := strings.Join(lines, " "); !rows.Loaded || rows.Query <= 0 || text != `["open",1,2.5] ["paid",2,7.25]` || !cmp.Equal(rows.Columns, want) {
		t.Errorf("got %+v: %s", rows, text)
	}
	if rows, err := h.Query(t.Context(), duckdb.Question{SQL: "SELECT * FROM range(10000000)", MaxRows: 3, MaxBytes: 1025}); err != nil || rows.Loaded || rows.Count != 3 || !rows.Truncated {
		t.Errorf("many rows: %+v, %v", rows, err)
	}
	if rows, err := h.Query(t.Context(), duckdb.Question{SQL: "SELECT repeat('x', 5000) FROM range(10)", MaxRows: 3, MaxBytes: 1025}); err != nil || rows.Count < 1 || !rows.Truncated {
		t.Errorf("a long row: %+v, %v", rows, err)
	}
	tree, err := h.Parse(t.Context(), "SELECT 1; SELECT 2")
	if err != nil || len(tree.Statements) != 2 {
		t.Errorf("a tree: %+v, %v", tree, err)
	}
}

func TestRealFaults(t *testing.T) {
	h := real(t)
	if _, err := h.Load(t.Context(), csv(t, fewOrders)); err != nil {
		t.Fatal(err)
	}
	for sql, says := range map[string]string{
		"SELEC 1":                              "syntax",
		"SELECT nothing FROM orders":           "nothing",
		"SELECT 1; SELECT 2":                   "",
		"":                                     "",
		"DROP TABLE shop.orders":               "",
		"SELECT * FROM read_csv('/etc/group')": "",
		"SELECT error('oh\x1b[31m')":           "oh",
	} {
		_, err := h.Query(t.Context(), ask1(sql))
		if wantType(t, err, cove.RunSQLFailed, says); strings.Contains(cove.MessageOf(err), "\x1b") {
			t.Errorf("%q: %q", sql, cove.MessageOf(err))
		}
		if _, ok := errors.AsType[*duckdb.Fault](err); !ok {
			t.Errorf("%q: no fault in %v", sql, err)
		}
	}
	_, err := h.Query(t.Context(), ask1("SELECT max(a) FROM (SELECT list(range || 'abcdefghijklmnopqrstuvwxyz') AS a FROM range(100000000))"))
	if wantType(t, err, cove.RunSQLFailed, "the query needs more than the 512 MB that this session has"); cove.CodeOf(err) != cove.Exhausted {
		t.Errorf("too much memory: %v", err)
	}
	if rows, err := h.Query(t.Context(), ask1("SELECT 1")); err != nil || string(rows.Rows[0]) != "[1]" {
		t.Errorf("afterwards: %+v, %v", rows, err)
	}
	missing := []duckdb.Table{{Name: "x", Path: "/nowhere/x.csv", Format: duckdb.CSV}}
	if got, err := h.Load(t.Context(), missing); err != nil || got[0].Problem == "" {
		t.Errorf("a file that is not there: %+v, %v", got, err)
	}
}

// TestRealStop: a question without end is stopped, and the tables are still there.
func TestRealStop(t *testing.T) {
	h := real(t)
	if _, err := h.Load(t.Context(), csv(t, fewOrders)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Query(t.Context(), ask1("SELECT 1")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := h.Query(ctx, ask1(endless))
	wantType(t, err, cove.RunTimeout)
	rows, err := h.Query(t.Context(), ask1("SELECT count(*) FROM orders"))
	if err != nil || string(rows.Rows[0]) != "[3]" {
		t.Errorf("afterwards: %+v, %v", rows, err)
	}
}
