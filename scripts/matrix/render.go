package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// The marks in the page, each on a line of its own.
const (
	begin = "<!-- what follows is written by make matrix ARGS=-write -->"
	end   = "<!-- until here -->"
)

// reasons numbers the reasons in the order they come up.
type reasons struct {
	numbers map[string]int
	list    []string
}

func (r *reasons) number(why string) int {
	if r.numbers == nil {
		r.numbers = map[string]int{}
	}
	if r.numbers[why] == 0 {
		r.list = append(r.list, why)
		r.numbers[why] = len(r.list)
	}
	return r.numbers[why]
}

// mark is a cell of the table.
func (r *reasons) mark(v verdict) string {
	switch v.kind {
	case passed:
		return "pass"
	case unsupported:
		return fmt.Sprintf("– %d", r.number("unsupported: "+v.why))
	case notRun:
		return fmt.Sprintf("– %d", r.number("not run: "+v.why))
	case failed:
		return "FAIL"
	default:
		return "?"
	}
}

// rows returns the cells, a line for each case, and what their numbers mean.
func (t *table) rows() (rows [][]string, why []string) {
	var r reasons
	for _, name := range t.cases {
		row := []string{name}
		for _, c := range t.columns {
			row = append(row, r.mark(t.cell(c, name)))
		}
		rows = append(rows, row)
	}
	return rows, r.list
}

// counts says for each column how many cases passed, and how many did not apply.
func (t *table) counts() [][]string {
	var rows [][]string
	for _, c := range t.columns {
		n := map[kind]int{}
		for _, name := range t.cases {
			n[t.cell(c, name).kind]++
		}
		rows = append(rows, []string{c.name, c.against, fmt.Sprint(n[passed]), fmt.Sprint(n[unsupported]), fmt.Sprint(n[notRun])})
	}
	return rows
}

// text is the table for a terminal.
func (t *table) text() string {
	rows, why := t.rows()
	wide := 0
	for _, row := range rows {
		wide = max(wide, len(row[0]))
	}
	var b strings.Builder
	line := func(cells []string) {
		padded := []string{fmt.Sprintf("%-*s", wide, cells[0])}
		for i, cell := range cells[1:] {
			padded = append(padded, fmt.Sprintf("%-*s", max(len(t.columns[i].name), len("pass")), cell))
		}
		b.WriteString(strings.TrimRight(strings.Join(padded, "  "), " ") + "\n")
	}
	line(append([]string{""}, names(t.columns)...))
	for _, row := range rows {
		line(row)
	}
	b.WriteString("\n")
	for i, w := range why {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, w)
	}
	b.WriteString("\n")
	for _, c := range t.counts() {
		fmt.Fprintf(&b, "%s, against %s: %s passed, %s unsupported, %s not run\n", c[0], c[1], c[2], c[3], c[4])
	}
	return b.String()
}

// markdown is the table for the page.
func (t *table) markdown() string {
	rows, why := t.rows()
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head := func(cells ...string) {
		line(cells)
		b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
	}
	head("", "run against", "passed", "unsupported", "not run")
	for _, c := range t.counts() {
		line(c)
	}
	b.WriteString("\n")
	head(append([]string{"case"}, names(t.columns)...)...)
	for _, row := range rows {
		row[0] = "`" + row[0] + "`"
		line(row)
	}
	b.WriteString("\n")
	for i, w := range why {
		fmt.Fprintf(&b, "%d. %s\n", i+1, w)
	}
	return b.String()
}

// replace puts the text between the marks of a file.
func replace(file, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(old), begin+"\n")
	_, after, ended := strings.Cut(rest, end+"\n")
	if !found || !ended {
		return errors.New(file + " lacks the marks around the table")
	}
	return os.WriteFile(file, []byte(before+begin+"\n\n"+text+"\n"+end+"\n"+after), 0o644) //nolint:gosec // the page is for everybody
}
