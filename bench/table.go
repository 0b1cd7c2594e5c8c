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
	must     float64 // value may not be above this, or not below it with least
	aim      float64 // what it should reach one day; 0 where must is all
	least    bool    // more is better
}

func (r row) ok() bool { return r.reaches(r.must) }

func (r row) reaches(goal float64) bool {
	if r.least {
		return r.value >= goal
	}
	return r.value <= goal
}

// goal is a bound in words.
func (r row) goal(bound float64) string {
	sign := "≤"
	if r.least {
		sign = "≥"
	}
	return fmt.Sprintf("%s %g%s", sign, bound, r.unit)
}

// verdict is the last word on a row.
func (r row) verdict() string {
	switch {
	case !r.ok():
		return "MISSED"
	case r.aim != 0 && r.reaches(r.aim):
		return "ok, aim reached"
	default:
		return "ok"
	}
}

// render returns the rows as a Markdown table about something.
func render(about string, rows []row) string {
	var b strings.Builder
	b.WriteString("| " + about + " | measured | baseline, same run | result | must reach | aim | |\n|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		aim := ""
		if r.aim != 0 {
			aim = r.goal(r.aim)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f%s | %s | %s | %s |\n", r.name, r.measured, r.baseline, r.value, r.unit, r.goal(r.must), aim, r.verdict())
	}
	return b.String()
}

// missed returns one error that names every row that missed.
func missed(rows []row) error {
	var all error
	for _, r := range rows {
		if !r.ok() {
			all = errors.Join(all, fmt.Errorf("%s: %.2f%s, must reach %s", r.name, r.value, r.unit, r.goal(r.must)))
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
