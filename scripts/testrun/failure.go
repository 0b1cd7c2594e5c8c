package main

import "strings"

// failure is a test that failed, or something else that did.
type failure struct {
	name   string // the package and the test, as the report shows them
	said   string // its output
	path   string // the import path of its package
	test   string // its name; "" where it cannot be run again
	severe string // why it is not run again; "" where it may be
	count  int    // how many tests failed in it: tests below it and in other processes count, too
}

// maxSaid is how many lines of a failure stand at the end of the report, for readers
// of the end alone, and maxLine how much of a line does. All of them stand above.
const (
	maxSaid = 12
	maxLine = 400
)

// lines are the names, each with the end of its output below it.
func lines(failures []failure) []string {
	var all []string
	for _, f := range failures {
		name := f.name
		if f.severe != "" {
			name += " (" + f.severe + ": never run again)"
		}
		said := outputLines(f.said)
		all = append(append(all, name), said[max(0, len(said)-maxSaid):]...)
	}
	return all
}

// flakyLines are the names, each with the output of both runs.
func flakyLines(tests []flaky) []string {
	var all []string
	for _, f := range tests {
		all = append(all, f.name, "  failed:")
		all = append(all, outputLines(f.said)...)
		all = append(all, "  passed when it was run again by itself:")
		all = append(all, outputLines(f.passed)...)
	}
	return all
}

func outputLines(text string) []string {
	var said []string
	for line := range strings.Lines(text) {
		if text := strings.TrimRight(line, "\n"); !strings.HasPrefix(strings.TrimSpace(text), "=== ") {
			if len(text) > maxLine {
				text = strings.ToValidUTF8(text[:maxLine], "") + "…"
			}
			said = append(said, "  "+text)
		}
	}
	return said
}
