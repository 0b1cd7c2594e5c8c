package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// row is one promise: what was measured, against what, and what it must reach.
type row struct {
	name     string
	measured string  // in words, for people
	baseline string  // in words, for people
	value    float64 // what is compared with must
	unit     string
	must     float64 // value may not be above this
}

func (r row) ok() bool { return r.value <= r.must }

// render returns the rows as a Markdown table.
func render(rows []row) string {
	var b strings.Builder
	b.WriteString("| what | measured | baseline, same run | result | must reach | |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		mark := "ok"
		if !r.ok() {
			mark = "MISSED"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f%s | ≤ %g%s | %s |\n", r.name, r.measured, r.baseline, r.value, r.unit, r.must, r.unit, mark)
	}
	return b.String()
}

// missed returns one error that names every row that missed.
func missed(rows []row) error {
	var all error
	for _, r := range rows {
		if !r.ok() {
			all = errors.Join(all, fmt.Errorf("%s: %.2f%s, must reach %g%s", r.name, r.value, r.unit, r.must, r.unit))
		}
	}
	return all
}

// The table stands between these lines of a document.
const (
	beginMark = "<!-- bench:begin -->\n"
	endMark   = "<!-- bench:end -->\n"
)

// writeInto replaces the table in a document.
func writeInto(name, table string) error {
	text, err := os.ReadFile(name) //nolint:gosec // the operator names the file on the command line
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), beginMark)
	_, after, ok2 := strings.Cut(rest, endMark)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no %q and %q lines", name, strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return os.WriteFile(name, []byte(before+beginMark+table+endMark+after), 0o644) //nolint:gosec // a document for everybody
}
