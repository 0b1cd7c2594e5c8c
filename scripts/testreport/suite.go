package main

import (
	"regexp"
	"strings"
)

// suite is one package while its tests run.
type suite struct {
	tests  map[string]*test
	order  []string
	own    strings.Builder // written outside of any test
	cached bool
	done   bool
}

type test struct {
	output strings.Builder
	action string // pass, fail or skip; "" while it runs
}

func newSuite() *suite { return &suite{tests: map[string]*test{}} }

func (s *suite) output(text string) {
	if strings.HasPrefix(text, "ok ") && strings.Contains(text, "(cached)") {
		s.cached = true
	}
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
		t.output.WriteString(e.Output)
	case "pass":
		t.action = e.Action
		t.output.Reset()
	case "fail", "skip":
		t.action = e.Action
	}
}

// verdict is what became of a package's tests. A test with subtests is counted
// by those alone, unless it failed or was skipped for a reason of its own.
type verdict struct {
	passed  int
	failed  []failure
	ended   []string // of the failed ones, those that ran to their end in a package that is sound
	skipped []string // with the reason
	text    string   // all that failed tests wrote
}

func (v verdict) tests() int { return v.passed + len(v.failed) + len(v.skipped) }

func (s *suite) verdict() verdict {
	var v verdict
	var text strings.Builder
	parent := map[string]bool{}
	explained := map[string]bool{} // a subtest shares its fate
	for _, name := range s.order {
		for i, c := range name {
			if c == '/' {
				parent[name[:i]] = true
				explained[name[:i]+" "+s.tests[name].action] = true
			}
		}
	}
	for _, name := range s.order {
		t := s.tests[name]
		counted := !parent[name] || t.action != "pass" && !explained[name+" "+t.action]
		switch t.action {
		case "pass":
			if counted {
				v.passed++
			}
		case "skip":
			if counted {
				v.skipped = append(v.skipped, name+": "+reason(t.output.String()))
			}
		case "fail":
			text.WriteString(t.output.String())
			if counted {
				v.failed = append(v.failed, failure{name, t.output.String()})
				v.ended = append(v.ended, name)
			}
		default:
			text.WriteString(t.output.String())
			if counted {
				v.failed = append(v.failed, failure{name + " (did not finish)", t.output.String()})
			}
		}
	}
	text.WriteString(s.own.String())
	v.text = text.String()
	if strings.Contains(v.text, "WARNING: DATA RACE") || strings.Contains(v.text, "goleak: ") {
		v.ended = nil
	}
	return v
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
