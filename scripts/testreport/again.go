package main

import (
	"fmt"
	"regexp"
	"strings"
)

// maxAgain is how many tests may be run again. Where more fail, something is broken.
const maxAgain = 5

// again lists what may be run once more by itself, a line for each test: the package
// and the pattern for go test -run, with a tab between them. It is empty unless every
// failure is that of a test which ran to its end: builds, panics, races of data and
// what fails outside of tests say enough the first time.
func (r *report) again() string {
	if len(r.failed) != len(r.repeatable) || len(r.broken) > 0 || len(r.failed) > maxAgain {
		return ""
	}
	var lines strings.Builder
	for _, t := range r.repeatable {
		fmt.Fprintf(&lines, "%s\t%s\n", t.path, t.pattern())
	}
	return lines.String()
}

// repeatable is a test that failed and can be run by itself.
type repeatable struct{ path, test string }

func (t repeatable) pattern() string {
	var parts []string
	for part := range strings.SplitSeq(t.test, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return strings.Join(parts, "/")
}

// want reports those of a list that did not pass: nobody may be told that a test
// passed which did not even run.
func (r *report) want(list string) {
	for line := range strings.Lines(list) {
		path, pattern, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !r.passedIn(path, pattern) {
			r.broken = append(r.broken, fmt.Sprintf("%s %s did not run and pass", short(path), pattern))
		}
	}
}

func (r *report) passedIn(path, pattern string) bool {
	s := r.packages[path]
	if s == nil {
		return false
	}
	for name, t := range s.tests {
		if t.action == "pass" && (repeatable{path, name}).pattern() == pattern {
			return true
		}
	}
	return false
}
