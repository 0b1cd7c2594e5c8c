// Command testrun runs the tests of a tier and prints what a person wants to know:
// a line for each package, the whole output of tests that failed, skipped tests with
// their reasons, the slowest tests and packages, the time of builds apart, and a closing
// line "N passed, N failed, N skipped".
//
// A test that failed an assertion is run again by itself, up to twice. If it passes
// then, it is flaky: it is printed with both outputs and counted on the last line. A run
// passes with at most three flaky tests. Failures that are never run again are listed in
// severe.go. A test that docs/testing.md lists as flaky before must not be flaky again.
//
// It fails when a test or a build failed, when a stream of events was cut off and when
// no test ran at all. It must not hide a failure.
//
// usage: testrun [flags] [-- flags of go test] packages
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the flags of the command.
type options struct {
	tier   string // what the report calls this run
	full   string // patterns of packages, with commas, that run the full tier
	duckdb bool   // whether the module of DuckDB is tested, too
	cover  string // the folder for profiles, "" for none
	events string // the file that keeps all events
	known  string // the page that lists the tests that were flaky before

	installed string // a digest of the programs that are installed
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("testrun", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.tier, "tier", "gate", "the `name` of the run in the report")
	flags.StringVar(&o.full, "full", "", "`packages`, with commas, whose full tier runs")
	flags.BoolVar(&o.duckdb, "duckdb", false, "test the module of DuckDB, too")
	flags.StringVar(&o.cover, "cover", "", "write coverage profiles to this `folder`")
	flags.StringVar(&o.events, "events", "", "keep all events in this `file`")
	flags.StringVar(&o.known, "known", "docs/testing.md", "the `page` that lists tests that were flaky before")
	flags.StringVar(&o.installed, "installed", "", "a `digest` of the programs that tests find on this machine: with another, no cached result is used")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	goFlags, patterns := split(flags.Args())
	ok, err := o.test(ctx, goFlags, patterns, stdout, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "testrun:", err)
	}
	if err != nil || !ok {
		return 1
	}
	return 0
}

// split separates the flags of go test from packages. A flag and its value are one
// argument: -run=X.
func split(args []string) (flags, patterns []string) {
	for _, a := range args {
		switch {
		case a == "--":
		case strings.HasPrefix(a, "-"):
			flags = append(flags, a)
		default:
			patterns = append(patterns, a)
		}
	}
	return flags, patterns
}

func (o options) test(ctx context.Context, goFlags, patterns []string, stdout, stderr io.Writer) (ok bool, err error) {
	known, err := readKnown(o.known)
	if err != nil {
		return false, err
	}
	commands, err := o.plan(ctx, goFlags, patterns)
	if err != nil {
		return false, err
	}
	events := io.Discard
	if o.events != "" {
		f, err := os.Create(o.events)
		if err != nil {
			return false, err
		}
		defer func() { _ = f.Close() }()
		events = f
	}
	start := time.Now()
	r := newReport(stdout)
	for _, c := range commands {
		if err := c.run(ctx, r, events, stderr); err != nil {
			return false, err
		}
	}
	r.endPackages()
	if err := r.rerun(ctx, commands, stderr); err != nil {
		return false, err
	}
	r.judgeFlaky(known)
	r.printSlowest(o.tier, time.Since(start))
	return r.finish(), nil
}
