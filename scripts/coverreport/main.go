// Command coverreport adds up a coverage profile by package, prints the worst
// package first, and fails when the whole is below a bound.
//
// Left out, because their statements are not what the tests are there to
// reach: generated files; the suites in packages named *test, which are tests
// themselves and run their complaints only against a broken implementation;
// bench, which is run by make bench; and the main.go files, which only call a
// function and exit with its answer. Nothing else is left out, and nothing may
// be added here to lift a number.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("coverreport", flag.ContinueOnError)
	flags.SetOutput(stderr)
	least := flags.Float64("least", 0, "fail below this `percentage` of statements")
	kept := flags.String("kept", "", "write the part of the profile that counts to this `file`")
	root := flags.String("root", ".", "the `folder` of the module")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() != 1 {
		_, _ = fmt.Fprintln(stderr, "usage: coverreport [flags] profile")
		return 2
	}
	total, err := report(flags.Arg(0), *root, *kept, stdout)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "coverreport:", err)
		return 1
	}
	if total.percent() < *least {
		_, _ = fmt.Fprintf(stderr, "coverage is %.1f %%; at least %g %% is wanted: write tests for the first packages of the table\n", total.percent(), *least)
		return 1
	}
	return 0
}
