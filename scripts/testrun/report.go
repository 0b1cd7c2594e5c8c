package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// module is cut off from package paths.
const module = "github.com/cove-sandbox/cove"

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action      string
	Package     string
	Test        string
	ImportPath  string // of a build
	Output      string
	Elapsed     float64
	FailedBuild string
}

type report struct {
	out      io.Writer
	packages map[string]*suite
	started  []string                    // packages in order
	output   map[string]*strings.Builder // of builds, by package
	passed   int
	failed   []failure
	flaky    []flaky
	skipped  []string
	full     int      // tests of the full tier that were skipped
	broken   []string // defects of the stream of events itself
	builds   builds
	keep     bool // the output of tests that pass
}

func newReport(out io.Writer) *report {
	return &report{out: out, packages: map[string]*suite{}, output: map[string]*strings.Builder{}}
}

// read takes events until the stream ends. A line that is not an event is shown
// and makes the run invalid.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}

func (r *report) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		text := strings.TrimRight(string(line), "\n")
		r.print("%s\n", text)
		r.broken = append(r.broken, fmt.Sprintf("a line is not an event of go test: %.120q", text))
		return
	}
	switch {
	case e.Action == "build-output":
		r.build(e.ImportPath).WriteString(e.Output)
	case e.Action == "build-fail":
		r.print("%s", r.build(e.ImportPath))
		r.failed = append(r.failed, failure{name: "build of " + short(e.ImportPath)})
	case e.Package == "":
	case e.Test == "":
		r.packageEvent(e)
	default:
		r.suite(e.Package).testEvent(e)
	}
}

func (r *report) build(path string) *strings.Builder {
	if r.output[path] == nil {
		r.output[path] = &strings.Builder{}
	}
	return r.output[path]
}

func (r *report) suite(path string) *suite {
	s := r.packages[path]
	if s == nil {
		s = newSuite()
		s.keep = r.keep
		r.packages[path] = s
		r.started = append(r.started, path)
	}
	return s
}

func (r *report) packageEvent(e event) {
	s := r.suite(e.Package)
	switch e.Action {
	case "output":
		s.output(e.Output)
	case "pass", "fail", "skip":
		s.done = true
		r.close(e, s)
	}
}

// close prints a package that has ended and adds it up.
func (r *report) close(e event, s *suite) {
	name := short(e.Package)
	v := s.verdict(e.Package)
	s.seconds = e.Elapsed
	r.passed += v.passed
	r.full += v.full
	for _, t := range v.skipped {
		r.skipped = append(r.skipped, name+" "+t)
	}
	if e.Action == "fail" || len(v.failed) > 0 || v.raced {
		r.print("%s", v.text)
		r.print("FAIL  %-28s %6.1fs\n", name, e.Elapsed)
		r.failed = append(r.failed, v.failed...)
		switch {
		case len(v.failed) > 0 || e.FailedBuild != "":
		case v.raced:
			r.failed = append(r.failed, failure{name: name + " (a data race, although its tests passed)"})
		default:
			r.failed = append(r.failed, failure{name: name + " (outside of a test)"})
		}
		return
	}
	if v.tests()+v.full == 0 && e.Action == "pass" && s.ran {
		r.broken = append(r.broken, name+" passed, and no test of it ran")
	}
	if v.tests() > 0 {
		cached := ""
		if s.cached {
			cached = ", cached"
		}
		r.print("ok    %-28s %6.1fs  %d tests%s\n", name, e.Elapsed, v.tests(), cached)
	}
}

// failures counts everything that has failed so far.
func (r *report) failures() int { return len(r.failed) + len(r.broken) }

// endPackages closes packages whose events were cut off.
func (r *report) endPackages() {
	for _, path := range r.started {
		if s := r.packages[path]; !s.done {
			r.close(event{Action: "fail", Package: path}, s)
			r.broken = append(r.broken, "the events of "+short(path)+" end in the middle")
		}
	}
}

// finish prints the end of the report and tells whether the run has passed.
func (r *report) finish() bool {
	if r.passed+len(r.failed) == 0 {
		r.broken = append(r.broken, "no test ran")
	}
	r.list("Skipped", r.skipped)
	r.list("FLAKY", flakyLines(r.flaky))
	r.list("Failed", lines(r.failed))
	r.list("Invalid run", r.broken)
	if r.full > 0 {
		r.print("\n%d tests of the full tier were not run; make test-all runs them\n", r.full)
	}
	counts := fmt.Sprintf("%d passed, %d failed, %d skipped", r.passed, len(r.failed), len(r.skipped))
	if len(r.flaky) > 0 {
		counts += fmt.Sprintf(", %d flaky", len(r.flaky))
	}
	r.print("%s\n", counts)
	return r.failures() == 0
}

func (r *report) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	r.print("\n%s:\n", title)
	for _, l := range lines {
		r.print("  %s\n", l)
	}
}

func (r *report) print(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format, args...)
}

func short(path string) string {
	path, variant, _ := strings.Cut(path, " ") // "x [x.test]" is x built for its tests
	if path == module {
		path = "."
	}
	path = strings.TrimPrefix(path, module+"/")
	if variant != "" {
		return path + " (tests)"
	}
	return path
}
