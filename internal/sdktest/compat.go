package sdktest

import (
	"fmt"
	"strings"
)

// Status is how a case ended.
type Status string

// How a case ends. Only Skip may differ between machines.
const (
	Pass        Status = "pass"
	Unsupported Status = "unsupported" // the server refused it, with the reason
	Absent      Status = "absent"      // the SDK has no such call
	Skip        Status = "skip"        // it cannot be tried here
	Fail        Status = "fail"
)

// Line is what a case says of itself.
type Line struct {
	Case   string `json:"case"`
	Status Status `json:"status"`
	Why    string `json:"why"`
}

// Column is one SDK in one mode, and what its cases said. Without any it was not
// run, and stands in the table as unknown.
type Column struct {
	Title string
	Lines map[string]Line
}

// DidNotRun ends the problem of a row whose case said nothing.
const DidNotRun = ": did not run"

// unknown is a cell that was not tried.
const unknown = "?"

// Problems compares what the cases of a column said with the rows: every row has a
// case, every case has a row, none failed, and what is unsupported is said to be.
func (c Column) Problems() []string {
	var all []string
	known := map[string]bool{}
	for _, s := range Sections {
		for _, r := range s.Rows {
			known[r.Case] = true
			l, ran := c.Lines[r.Case]
			switch {
			case !ran:
				all = append(all, r.Case+DidNotRun)
			case l.Status == Unsupported && r.No == "":
				all = append(all, r.Case+": is refused, and the rows do not say why: "+l.Why)
			case cell(l) == "":
				all = append(all, r.Case+": "+l.Why)
			}
		}
	}
	for name := range c.Lines {
		if !known[name] {
			all = append(all, name+": has no row")
		}
	}
	return all
}

// cell is what the table shows of a case, or "" for what it never shows.
func cell(l Line) string {
	switch l.Status {
	case Pass:
		return "yes"
	case Unsupported:
		return "no"
	case Absent:
		return "–"
	case Skip, "":
		return unknown
	case Fail:
	}
	return ""
}

// Table renders the table of docs/compat.md.
func Table(columns []Column) string {
	var b strings.Builder
	for _, s := range Sections {
		_, _ = fmt.Fprintf(&b, "\n## %s\n\n|  |", s.Title)
		for _, c := range columns {
			_, _ = fmt.Fprintf(&b, " %s |", c.Title)
		}
		b.WriteString("\n|" + strings.Repeat("---|", len(columns)+1) + "\n")
		for _, r := range s.Rows {
			_, _ = fmt.Fprintf(&b, "| %s |", r.What)
			for _, c := range columns {
				_, _ = fmt.Fprintf(&b, " %s |", cell(c.Lines[r.Case]))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n## Why not\n\n")
	for _, s := range Sections {
		for _, r := range s.Rows {
			if r.No != "" {
				_, _ = fmt.Fprintf(&b, "- %s: %s\n", r.What, r.No)
			}
		}
	}
	return b.String()
}

// Fill returns got with what was not tried taken from want, an earlier table, as far
// as that has the same rows and columns.
func Fill(got, want string) string {
	earlier := map[string][]string{}
	heads := map[string]string{}
	section, head := "", ""
	for line := range strings.Lines(want) {
		section, head = place(line, section, head)
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			earlier[section+cells[1]], heads[section+cells[1]] = cells, head
		}
	}
	var b strings.Builder
	section, head = "", ""
	for line := range strings.Lines(got) {
		section, head = place(line, section, head)
		cells := strings.Split(line, "|")
		if len(cells) > 2 && heads[section+cells[1]] == head {
			old := earlier[section+cells[1]]
			for i := 2; i < len(cells) && len(old) == len(cells); i++ {
				if strings.TrimSpace(cells[i]) == unknown {
					cells[i] = old[i]
				}
			}
		}
		b.WriteString(strings.Join(cells, "|"))
	}
	return b.String()
}

// place follows which heading and which head of a table a line is below.
func place(line, section, head string) (string, string) {
	if strings.HasPrefix(line, "## ") {
		return line, ""
	}
	if head == "" && strings.HasPrefix(line, "|") {
		return section, line
	}
	return section, head
}
