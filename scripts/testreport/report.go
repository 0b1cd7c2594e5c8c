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
	started  []string // packages in order
	builds   map[string]*strings.Builder
	passed   int
	failed   []failure
	skipped  []string
	broken   []string // what is wrong with the stream itself

	repeatable []repeatable // of those that failed
}

func newReport(out io.Writer) *report {
	return &report{out: out, packages: map[string]*suite{}, builds: map[string]*strings.Builder{}}
}

// read takes events until the stream ends. A line that is no event is shown
// and remembered: something wrote between the events or cut one short.
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
		r.broken = append(r.broken, fmt.Sprintf("a line is no event of go test: %.120q", text))
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
	if r.builds[path] == nil {
		r.builds[path] = &strings.Builder{}
	}
	return r.builds[path]
}

func (r *report) suite(path string) *suite {
	s := r.packages[path]
	if s == nil {
		s = newSuite()
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
	v := s.verdict()
	r.passed += v.passed
	for _, t := range v.skipped {
		r.skipped = append(r.skipped, name+" "+t)
	}
	if e.Action == "fail" || len(v.failed) > 0 {
		r.print("%s", v.text)
		r.print("FAIL  %-28s %6.1fs\n", name, e.Elapsed)
		for _, t := range v.failed {
			r.failed = append(r.failed, failure{name + " " + t.name, t.said})
		}
		for _, t := range v.ended {
			r.repeatable = append(r.repeatable, repeatable{e.Package, t})
		}
		if len(v.failed) == 0 && e.FailedBuild == "" {
			r.failed = append(r.failed, failure{name: name + " (outside of a test)"})
		}
		return
	}
	if v.tests() > 0 {
		cached := ""
		if s.cached {
			cached = ", cached"
		}
		r.print("ok    %-28s %6.1fs  %d tests%s\n", name, e.Elapsed, v.tests(), cached)
	}
}

// finish prints the end of the report and says whether all is well.
func (r *report) finish() bool {
	for _, path := range r.started {
		if s := r.packages[path]; !s.done {
			r.close(event{Action: "fail", Package: path}, s)
			r.broken = append(r.broken, "the stream ends in the middle of "+short(path))
		}
	}
	if r.passed+len(r.failed)+len(r.skipped) == 0 {
		r.broken = append(r.broken, "no test ran")
	}
	r.list("Skipped", r.skipped)
	r.list("Failed", lines(r.failed))
	r.list("Not to be trusted", r.broken)
	r.print("%d passed, %d failed, %d skipped\n", r.passed, len(r.failed), len(r.skipped))
	return len(r.failed) == 0 && len(r.broken) == 0
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
