// Command testreport reads the events of go test -json from standard input and
// prints what a person wants to know: one line for each package, the output of
// what failed in full, the skipped tests by name with their reasons, and a
// closing line "N passed, N failed, N skipped".
//
// It fails when a test or a build failed, when the stream was cut off and when
// no test ran at all, so that silence is never taken for success. It must not
// decide what is run or hide anything that failed.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Stdin, os.Stdout, os.Stderr))
}

func run(stdin io.Reader, stdout, stderr io.Writer) int {
	r := newReport(stdout)
	if err := r.read(stdin); err != nil {
		_, _ = fmt.Fprintln(stderr, "testreport:", err)
		return 1
	}
	if !r.finish() {
		return 1
	}
	return 0
}
