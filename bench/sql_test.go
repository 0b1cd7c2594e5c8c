package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
	"github.com/cove-sandbox/cove/provider/fake"
)

// playHelper is what this program plays instead of running tests, where the variable
// is set: good, or bad in one way.
const playHelper = "COVE_BENCH_HELPER"

// helper answers as DuckDB's executable does, without looking at anything.
func helper(mood string) {
	in := bufio.NewReader(os.Stdin)
	for {
		var r ask.Request
		if ask.Read(in, &r) != nil {
			os.Exit(0)
		}
		a := ask.Answer{ID: r.ID, Opened: &ask.Opened{}, Rows: &ask.Rows{Count: 1}, Tables: []ask.Loaded{{Name: "orders"}}}
		switch {
		case mood == "silent":
			os.Exit(3)
		case mood == "no tables" && r.Verb == ask.VerbLoad:
			a.Tables[0].Problem = "the file is odd"
		case mood == "no rows" && r.Verb == ask.VerbQuery:
			a.Rows.Count = 0
		case mood == "faulty":
			a.Fault = &ask.Fault{Message: "it is ill"}
		}
		if ask.Write(os.Stdout, a) != nil {
			os.Exit(1)
		}
	}
}

// sqlOn is how questions are measured where everything only pretends.
func sqlOn(t *testing.T, mood string) sqlOptions {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return sqlOptions{duckdb: script(t, "cove-duckdb", playHelper+"='"+mood+"' exec "+self), rows: 3, rounds: 2, group: "SELECT 1", one: "SELECT 1", hungry: "fail"}
}

func openPretending(ctx context.Context, home, _ string) (cove.Platform, func() error, error) {
	r, err := newRig(ctx, openFake, func(c *engine.Config) { c.Runners = map[string]cove.Runner{"": fake.Runner{}} })
	if err != nil {
		return nil, nil, err
	}
	return r.platform, func() error {
		return errors.Join(r.close(context.WithoutCancel(ctx)), os.RemoveAll(filepath.Dir(home)))
	}, nil
}

func TestMeasureSQL(t *testing.T) {
	rows, err := sqlRows(t.Context(), sqlOn(t, "good"), openPretending)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name string
		must float64
	}{{"`sql_group`", 1.15}, {"`sql_one`", 0.2}, {"`sql_memory`", 0}}
	for i, w := range want {
		if r := rows[i]; !strings.HasPrefix(r.name, w.name) || r.must != w.must || r.measured == "" || r.baseline == "" {
			t.Errorf("row %d is %+v", i, r)
		}
	}
	if r := rows[2]; !r.ok() || !strings.Contains(r.measured, "the question asked to fail") {
		t.Errorf("the memory row is %+v", r)
	}
}

// TestHunger wants the row to miss where a question that is too large is not told so.
func TestHunger(t *testing.T) {
	for _, hungry := range []string{"SELECT 1", "broken"} {
		o := sqlOn(t, "good")
		o.hungry = hungry
		rows, err := sqlRows(t.Context(), o, openPretending)
		if err != nil {
			t.Fatal(err)
		}
		if rows[2].ok() {
			t.Errorf("%s: the row is %+v", hungry, rows[2])
		}
	}
	o := sqlOn(t, "good")
	o.one = "fail"
	b := sqlBench{o: o}
	p, closed, err := openPretending(t.Context(), filepath.Join(t.TempDir(), "x", "home"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closed() }()
	b.p = p
	if r, err := b.hunger(t.Context()); err != nil || r.ok() {
		t.Errorf("where nothing lives on, the row is %+v, %v", r, err)
	}
}

func TestSQLThatCannotBeMeasured(t *testing.T) {
	for mood, want := range map[string]string{
		"silent": "the helper on the host", "no tables": "the file is odd", "no rows": "has no rows", "faulty": "it is ill",
	} {
		if _, err := sqlRows(t.Context(), sqlOn(t, mood), openPretending); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", mood, err)
		}
	}
	o := sqlOn(t, "good")
	o.group = "fail"
	if _, err := sqlRows(t.Context(), o, openPretending); err == nil || !strings.Contains(err.Error(), cove.RunSQLFailed) {
		t.Errorf("a question that fails: %v", err)
	}
	o.duckdb = "/no/such/helper"
	if _, err := sqlRows(t.Context(), o, openPretending); err == nil {
		t.Error("without a helper it is measured")
	}
	if _, _, err := sqlPart(t.Context(), options{only: partSQL}); err == nil || !strings.Contains(err.Error(), "scripts/bench.sh") {
		t.Errorf("nobody named a helper: %v", err)
	}
}
