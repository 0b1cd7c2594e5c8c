package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// suite is one package while its tests run.
type suite struct {
	tests   map[string]*test
	order   []string
	own     strings.Builder // written outside of any test
	cached  bool
	ran     bool // go test ran the tests, and there were some
	raced   bool // the report of a data race was seen
	done    bool
	seconds float64
	keep    bool // the output of tests that pass
}

type test struct {
	output  strings.Builder
	action  string // pass, fail or skip; "" while it runs
	seconds float64
	raced   bool // the report of a data race is in its output
}

func newSuite() *suite { return &suite{tests: map[string]*test{}} }

func (s *suite) output(text string) {
	if strings.HasPrefix(text, "ok ") && strings.Contains(text, "(cached)") {
		s.cached = true
	}
	// A package without test files is no such line, or one about its coverage.
	s.ran = s.ran || strings.HasPrefix(text, "ok ") && !strings.Contains(text, "[no tests to run]")
	s.raced = s.raced || race.MatchString(text)
	s.own.WriteString(text)
}

func (s *suite) testEvent(e event) {
	t := s.tests[e.Test]
	if t == nil {
		t = &test{}
		s.tests[e.Test] = t
		s.order = append(s.order, e.Test)
	}
	switch e.Action {
	case "output":
		t.raced = t.raced || race.MatchString(e.Output)
		s.raced = s.raced || t.raced
		t.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		if t.action == "fail" { // with -count it runs several times
			return
		}
		t.action, t.seconds = e.Action, e.Elapsed
		if e.Action == "pass" && !s.keep && !t.raced {
			t.output.Reset()
		}
	}
}

// verdict is the result of a package's tests. A test with subtests is counted
// by those alone, unless it failed or was skipped for a reason of its own.
type verdict struct {
	passed  int
	failed  []failure
	skipped []string // with the reason
	full    int      // skipped because they belong to the full tier
	text    string   // the output of all failed tests
	raced   bool     // the report of a data race was seen
}

func (v verdict) tests() int { return v.passed + len(v.failed) + len(v.skipped) }

// parents are the tests that have subtests.
func (s *suite) parents() map[string]bool {
	parent := map[string]bool{}
	for _, name := range s.order {
		for i, c := range name {
			if c == '/' {
				parent[name[:i]] = true
			}
		}
	}
	return parent
}

// explained are the tests with a subtest of the same result, as "name result".
func (s *suite) explained() map[string]bool {
	same := map[string]bool{}
	for _, name := range s.order {
		for i, c := range name {
			if c == '/' {
				same[name[:i]+" "+s.tests[name].action] = true
			}
		}
	}
	return same
}

// failsItself tells whether a test with failed subtests may also have failed an
// assertion of its own: it printed a line of its own.
func (t *test) failsItself() bool {
	return t.action == "fail" && slices.ContainsFunc(strings.Split(t.output.String(), "\n"), place.MatchString)
}

func (s *suite) verdict(path string) verdict {
	v := verdict{raced: s.raced}
	var text strings.Builder
	parent, explained := s.parents(), s.explained()
	for _, name := range s.order {
		t := s.tests[name]
		counted := !parent[name] || t.action != "pass" && (!explained[name+" "+t.action] || t.failsItself())
		if t.action != "pass" && t.action != "skip" || t.raced {
			text.WriteString(t.output.String())
		}
		if !counted {
			continue
		}
		switch t.action {
		case "pass":
			v.passed++
		case "skip":
			v.skip(name, reason(t.output.String()))
		case "fail":
			v.fail(path, name, t.output.String())
		default:
			v.failed = append(v.failed, failure{name: short(path) + " " + name + " (did not finish)", said: t.output.String(), path: path})
		}
	}
	text.WriteString(s.own.String())
	v.text = text.String()
	v.taint()
	return v
}

// fail adds a failed test, or adds it to the test around it that failed by itself: that
// one is run again with all of its subtests.
func (v *verdict) fail(path, name, output string) {
	why := severity(short(path)+" "+name, output)
	for i, f := range v.failed {
		if f.test != "" && strings.HasPrefix(name, f.test+"/") {
			v.failed[i].said += output
			v.failed[i].count++
			v.failed[i].severe = cmp.Or(f.severe, why)
			return
		}
	}
	v.failed = append(v.failed, failure{name: short(path) + " " + name, said: output, path: path, test: name, severe: why, count: countFailed(output)})
}

// countFailed counts the tests that failed, as the output of a failed test shows: itself,
// or tests of another process, without those that have subtests that failed.
func countFailed(output string) int {
	var names []string
	for _, found := range failedInside.FindAllStringSubmatch(output, -1) {
		names = append(names, found[1])
	}
	leaves := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
	return max(1, len(leaves)-1) // its own line is one of them
}

// taint marks all failures of a package whose output shows a defect outside of tests.
func (v *verdict) taint() {
	why := severity("", v.text)
	if v.raced {
		why = "a data race"
	}
	for i := range v.failed {
		v.failed[i].severe = cmp.Or(v.failed[i].severe, why)
	}
}

func (v *verdict) skip(name, why string) {
	if strings.HasPrefix(why, tier.Prefix) {
		v.full++
		return
	}
	v.skipped = append(v.skipped, name+": "+why)
}

var place = regexp.MustCompile(`^\s*[\w./-]+\.go:\d+: `)

// reason finds what a test said when it skipped itself.
func reason(output string) string {
	var words []string
	for line := range strings.Lines(output) {
		text := strings.TrimSpace(place.ReplaceAllString(line, ""))
		if text == "" || strings.HasPrefix(text, "=== ") || strings.HasPrefix(text, "--- SKIP") {
			continue
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return "no reason given"
	}
	return strings.Join(words, " ")
}
