package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func rows() []row {
	return []row{
		{name: "fast", measured: "1 µs", baseline: "2 µs", value: 0.5, must: 1},
		{name: "slow", measured: "9 ms", baseline: "3 ms", value: 3, unit: " ms", must: 2},
		{name: "many", measured: "9/s", baseline: "10/s", value: 0.9, must: 0.7, aim: 0.9, least: true},
		{name: "few", measured: "1/s", baseline: "10/s", value: 0.1, must: 0.7, aim: 0.9, least: true},
	}
}

func TestRenderSaysWhatMissed(t *testing.T) {
	table := render("what", rows())
	for _, want := range []string{
		"| fast | 1 µs | 2 µs | 0.50 | ≤ 1 |  | ok |",
		"| slow | 9 ms | 3 ms | 3.00 ms | ≤ 2 ms |  | MISSED |",
		"| many | 9/s | 10/s | 0.90 | ≥ 0.7 | ≥ 0.9 | ok, aim reached |",
		"| few | 1/s | 10/s | 0.10 | ≥ 0.7 | ≥ 0.9 | MISSED |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no line %q:\n%s", want, table)
		}
	}
	if err := missed(rows()); err == nil || !strings.Contains(err.Error(), "slow") || strings.Contains(err.Error(), "fast") {
		t.Errorf("the error is %v", err)
	}
	if err := missed(rows()[:1]); err != nil {
		t.Error(err)
	}
}

func TestWriteIntoReplacesOnlyTheTable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "doc.md")
	if err := os.WriteFile(name, []byte("before\n"+beginMark+"old\n"+endMark+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeInto(name, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if want := "before\n" + beginMark + "new\n" + endMark + "after\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(name, []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeInto(name, "x"); err == nil {
		t.Error("a document without marks was changed")
	}
	if err := writeInto(name+"x", "x"); err == nil {
		t.Error("a document that is not there was written")
	}
}

// TestRunOnASmallScale proves that the whole measurement works; the numbers
// are not looked at.
func TestRunOnASmallScale(t *testing.T) {
	rows, err := engineRows(t.Context(), 20, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 6 {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.name == "" || r.measured == "" || r.baseline == "" || r.must == 0 {
			t.Errorf("%+v lacks something", r)
		}
	}
}

func TestRunRefusesFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-nonsense"}, {"-only", "half"}, {"-only", "living", "-write", "x"}, {"-only", "engine", "-write", "x"}, {"-rounds", "0"}, {"-churn", "-1"},
	} {
		if err := run(t.Context(), args, os.Stdout); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}

func TestRunOfTheEngineAlone(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), []string{"-only", "engine", "-scale", "12", "-samples", "5"}, &out)
	if !strings.HasPrefix(out.String(), "Measured on ") || !strings.Contains(out.String(), "the engine's own cost") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
