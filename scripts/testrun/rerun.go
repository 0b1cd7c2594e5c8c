package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// maxFlaky is how many tests of a run may be flaky. Where more fail, none is run
// again: the run has failed either way.
const maxFlaky = 3

// maxReruns is how often a failed test is run again.
const maxReruns = 2

// flaky is a test that failed and passed when it was run again by itself.
type flaky struct {
	failure

	passed string // the output of the run that passed
}

// rerun runs failed tests again, each by itself and in the way it ran before, and
// moves those that pass to the flaky ones. The package of such a test is then run again
// as a whole: a package checks for leaks only where no test failed.
func (r *report) rerun(ctx context.Context, commands []command, stderr io.Writer) error {
	if !r.mayRerun(commands) {
		return nil
	}
	for _, f := range slices.Clone(r.failed) {
		r.print("\nRunning %s again by itself\n", f.name)
		c, err := commandOf(commands, f)
		if err != nil {
			return err
		}
		output, ok, err := r.rerunTest(ctx, c, f, stderr)
		if err != nil {
			return err
		}
		if ok {
			r.failed = slices.DeleteFunc(r.failed, func(g failure) bool { return g.name == f.name })
			r.flaky = append(r.flaky, flaky{f, output})
			r.passed++
		} else if output != "" {
			r.print("%s", output)
		}
	}
	return r.rerunPackages(ctx, commands, stderr)
}

// mayRerun tells whether all failures are those of assertions, and few.
func (r *report) mayRerun(commands []command) bool {
	count := 0
	for _, f := range r.failed {
		count += f.count
	}
	if len(r.failed) == 0 || count > maxFlaky || len(r.broken) > 0 {
		return false
	}
	if slices.ContainsFunc(commands, command.repeats) {
		return false
	}
	return !slices.ContainsFunc(r.failed, func(f failure) bool { return f.test == "" || f.severe != "" })
}

// repeats tells whether a flag of the user makes one result of a test stand for several
// runs, or leaves tests out.
func (c command) repeats() bool {
	return slices.ContainsFunc(c.flags, func(flag string) bool {
		name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		return name == "failfast" || name == "cpu" || name == "count" && value != "1"
	})
}

func commandOf(commands []command, f failure) (command, error) {
	i := slices.IndexFunc(commands, func(c command) bool {
		return slices.Contains(c.packages, f.path) || c.dir != "" && strings.HasPrefix(short(f.path), c.dir)
	})
	if i < 0 {
		return command{}, fmt.Errorf("no command ran %s", f.path)
	}
	return commands[i], nil
}

// rerunTest tells whether a test passes in one of the further runs. One that fails with
// more than an assertion is the last.
func (r *report) rerunTest(ctx context.Context, c command, f failure, stderr io.Writer) (output string, ok bool, err error) {
	for range maxReruns {
		var shown strings.Builder
		again, err := c.again(ctx, f.path, &shown, stderr, "-run="+pattern(f.test))
		if err != nil {
			return "", false, err
		}
		if s := again.packages[f.path]; s != nil && s.tests[f.test] != nil {
			output = s.tests[f.test].output.String()
			if s.tests[f.test].action == "pass" && again.failures() == 0 && len(r.newlySkipped(again)) == 0 {
				return output, true, nil
			}
		}
		if len(again.broken) > 0 || slices.ContainsFunc(again.failed, func(g failure) bool { return g.test == "" || g.severe != "" }) {
			return shown.String() + strings.Join(lines(again.failed), "\n") + "\n", false, nil
		}
	}
	return output, false, nil
}

// again runs tests of a package once more.
func (c command) again(ctx context.Context, path string, out, stderr io.Writer, flags ...string) (*report, error) {
	r := newReport(out)
	r.keep = true
	err := c.goTest(ctx, r, append([]string{"-count=1"}, flags...), []string{path}, io.Discard, stderr)
	r.endPackages()
	return r, err
}

// rerunPackages runs each package with a flaky test as a whole, up to twice, until it
// passes.
func (r *report) rerunPackages(ctx context.Context, commands []command, stderr io.Writer) error {
	done := map[string]bool{}
	for _, f := range slices.Clone(r.flaky) {
		if done[f.path] || len(r.failed) > 0 {
			continue
		}
		done[f.path] = true
		c, err := commandOf(commands, f.failure)
		if err != nil {
			return err
		}
		passed := false
		for try := 0; try < maxReruns && !passed && r.failures() == 0; try++ {
			if passed, err = r.rerunPackage(ctx, c, f.path, stderr); err != nil {
				return err
			}
		}
		if !passed && r.failures() == 0 {
			r.broken = append(r.broken, short(f.path)+" did not pass as a whole: nothing has checked it for leaks")
		}
	}
	return nil
}

// rerunPackage runs a package as a whole. Another test that fails an assertion there
// passed before, and is flaky, too; anything else that fails, fails the run.
func (r *report) rerunPackage(ctx context.Context, c command, path string, stderr io.Writer) (passed bool, err error) {
	r.print("\nRunning %s again as a whole\n", short(path))
	again, err := c.again(ctx, path, r.out, stderr)
	if err != nil {
		return false, err
	}
	r.broken = append(r.broken, again.broken...)
	for _, test := range r.newlySkipped(again) {
		r.broken = append(r.broken, "skipped only when its package was run again: "+test)
	}
	for _, f := range again.failed {
		known := slices.ContainsFunc(r.flaky, func(g flaky) bool { return g.name == f.name })
		switch {
		case f.test == "" || f.severe != "":
			r.failed = append(r.failed, f)
		case !known:
			r.flaky = append(r.flaky, flaky{f, "in the run before\n"})
		}
	}
	return again.failures() == 0, nil
}

// newlySkipped are the tests that a rerun skipped and this run did not: what they need
// may have gone with the failure.
func (r *report) newlySkipped(again *report) []string {
	before := map[string]bool{}
	for _, test := range r.skipped {
		name, _, _ := strings.Cut(test, ": ")
		before[name] = true
	}
	return slices.DeleteFunc(slices.Clone(again.skipped), func(test string) bool {
		name, _, _ := strings.Cut(test, ": ")
		return before[name]
	})
}

// pattern is what go test -run takes to run this test alone.
func pattern(test string) string {
	var parts []string
	for part := range strings.SplitSeq(test, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return strings.Join(parts, "/")
}

// judgeFlaky fails the run for tests that were flaky before.
func (r *report) judgeFlaky(known map[string]bool) {
	for _, f := range r.flaky {
		if isKnown(known, f.failure) {
			f.said = "it was flaky before, as docs/testing.md says, and is flaky again: find the cause\n" + f.said
			r.failed = append(r.failed, f.failure)
			r.passed--
		}
	}
	if len(r.flaky) > maxFlaky {
		r.broken = append(r.broken, fmt.Sprintf("%d tests were flaky; at most %d may be", len(r.flaky), maxFlaky))
	}
}

// isKnown tells whether the list has the failed test, a test around it, or a test that
// failed below it or in another process whose output it shows.
func isKnown(known map[string]bool, f failure) bool {
	names := []string{f.name}
	for _, inside := range failedInside.FindAllStringSubmatch(f.said, -1) {
		names = append(names, short(f.path)+" "+inside[1])
	}
	return slices.ContainsFunc(names, func(name string) bool {
		for listed := range known {
			if name == listed || strings.HasPrefix(name, listed+"/") {
				return true
			}
		}
		return false
	})
}

// knownHeading starts the list of tests that were flaky before.
const knownHeading = "## Tests that were flaky"

var knownRow = regexp.MustCompile("^\\| `([^` ]+ [^` ]+)` \\|")

// readKnown reads that list: the first cell of each row has the package and the test.
func readKnown(page string) (map[string]bool, error) {
	f, err := os.Open(page) //nolint:gosec // the page is named by the script
	if err != nil {
		return nil, fmt.Errorf("read the list of tests that were flaky: %w", err)
	}
	defer func() { _ = f.Close() }()
	known, listed := map[string]bool{}, false
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		line := scan.Text()
		row := knownRow.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "## "):
			listed = line == knownHeading
		case listed && row != nil:
			known[row[1]] = true
		case listed && strings.HasPrefix(line, "| `"):
			return nil, fmt.Errorf("%s: the first cell of a row must be one test, as `package Test`: %s", page, line)
		}
	}
	if len(known) == 0 && scan.Err() == nil {
		return nil, fmt.Errorf("%s has no list of tests below %q", page, knownHeading)
	}
	return known, scan.Err()
}
