package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// module is cut off from package paths.
const module = "github.com/cove-sandbox/cove/"

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

type kind int

const (
	notRun kind = iota
	passed
	unsupported
	failed
)

// verdict is what became of one case on one provider.
type verdict struct {
	kind kind
	why  string
}

// table is what all runs came to.
type table struct {
	columns []column
	cases   []string
	cells   map[string]map[string]verdict // by column and case
	whole   map[string]verdict            // by column: the suite itself
	outputs map[string]string             // by package and test: its last line
}

func newTable(columns []column, cases []string) *table {
	t := &table{columns: columns, cases: cases, cells: map[string]map[string]verdict{}, whole: map[string]verdict{}, outputs: map[string]string{}}
	for _, c := range columns {
		t.cells[c.name] = map[string]verdict{}
		t.whole[c.name] = verdict{notRun, "this run had no " + c.test + " of " + c.dir}
	}
	return t
}

// read takes events until the stream ends.
func (t *table) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				return fmt.Errorf("a line is no event of go test: %.120q", line)
			}
			t.take(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}

// take notes an event of a suite or of one of its cases.
func (t *table) take(e event) {
	dir := strings.TrimPrefix(e.Package, module)
	if e.Test == "" {
		if e.Action == "fail" {
			t.broke(dir)
		}
		return
	}
	key := dir + " " + e.Test
	if e.Action == "output" {
		if line := strings.TrimSpace(e.Output); line != "" && !strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "=== ") {
			t.outputs[key] = line
		}
		return
	}
	test, name, _ := strings.Cut(e.Test, "/")
	for _, c := range t.columns {
		if c.dir != dir || c.test != test {
			continue
		}
		v := t.verdict(e.Action, t.outputs[key])
		switch {
		case name == "":
			t.whole[c.name] = v
		case strings.Count(name, "/") == 1: // a group is no case, and an attack is a part of one
			t.cells[c.name][name] = v
		}
	}
}

// broke is for a package that failed: what did not end in it failed too, also
// where no test of it ever began.
func (t *table) broke(dir string) {
	for _, c := range t.columns {
		if c.dir == dir && t.whole[c.name].kind != passed && t.whole[c.name].kind != unsupported {
			t.whole[c.name] = verdict{failed, "the run of " + dir + " failed"}
		}
	}
}

var (
	place = regexp.MustCompile(`^[\w.-]+\.go:\d+: `)
	lacks = regexp.MustCompile(`^provider \S+ lacks what this case is about: `)
)

func (t *table) verdict(action, output string) verdict {
	why := lacks.ReplaceAllString(place.ReplaceAllString(output, ""), "")
	switch action {
	case "run":
		return verdict{failed, "did not finish"}
	case "pass":
		return verdict{kind: passed}
	case "skip":
		if why == "" {
			why = "no reason given"
		}
		return verdict{unsupported, why}
	default:
		return verdict{failed, why}
	}
}

// cell is what became of a case.
func (t *table) cell(c column, name string) verdict {
	if v, ok := t.cells[c.name][name]; ok {
		return v
	}
	switch w := t.whole[c.name]; w.kind {
	case unsupported: // the suite as a whole was skipped
		return verdict{notRun, w.why}
	case passed:
		return verdict{notRun, "not a part of this run"}
	case notRun, failed:
		return w
	default:
		return w
	}
}

// failed lists what failed.
func (t *table) failed() []string {
	var list []string
	for _, c := range t.columns {
		if w := t.whole[c.name]; w.kind == failed {
			list = append(list, c.name+": "+w.why)
		}
		for _, name := range t.cases {
			if v, ok := t.cells[c.name][name]; ok && v.kind == failed {
				list = append(list, c.name+" "+name+": "+v.why)
			}
		}
	}
	return list
}
