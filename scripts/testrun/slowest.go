package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Only so many tests and packages are printed, and none that is quick.
const (
	maxSlowest = 40
	leastSlow  = 1.0 // seconds
)

// timed is a test or a package and its seconds.
type timed struct {
	name    string
	seconds float64
}

// printSlowest prints where the time of a run went.
func (r *report) printSlowest(tier string, took time.Duration) {
	var tests, packages []timed
	var total float64
	for _, path := range r.started {
		s := r.packages[path]
		if s.cached {
			continue
		}
		total += s.seconds
		packages = append(packages, timed{short(path), s.seconds})
		tests = append(tests, s.leaves(short(path))...)
	}
	r.list(fmt.Sprintf("Slowest tests, at most %d", maxSlowest), slowest(tests))
	r.list(fmt.Sprintf("Slowest packages, at most %d", maxSlowest), slowest(packages))
	r.print("\n%s: %.0f s; packages %.0f s, compilers %.0f s, linkers %.0f s, several at a time\n",
		tier, took.Seconds(), total, r.builds.compile.Seconds(), r.builds.link.Seconds())
}

func slowest(all []timed) []string {
	slices.SortFunc(all, func(a, b timed) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), strings.Compare(a.name, b.name))
	})
	var lines []string
	for _, t := range all[:min(maxSlowest, len(all))] {
		if t.seconds >= leastSlow {
			lines = append(lines, fmt.Sprintf("%6.1fs  %s", t.seconds, t.name))
		}
	}
	return lines
}

// leaves are the tests of a package without subtests.
func (s *suite) leaves(name string) []timed {
	parent := s.parents()
	var all []timed
	for _, test := range s.order {
		if !parent[test] {
			all = append(all, timed{name + " " + test, s.tests[test].seconds})
		}
	}
	return all
}
