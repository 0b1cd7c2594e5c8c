// Command testreport reads the events of go test -json from standard input and
// prints what a person wants to know: one line for each package, the output of
// what failed in full, the skipped tests by name with their reasons, and a
// closing line "N passed, N failed, N skipped".
//
// With -again FILE it also lists there which of the failed tests may be run once more
// by themselves, if that can tell anything; -wanted FILE has those be run and pass.
//
// It fails when a test or a build failed, when the stream was cut off and when
// no test ran at all, so that silence is never taken for success. It must not
// decide what is run or hide anything that failed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	var f files
	flag.StringVar(&f.again, "again", "", "write there what may be run again")
	flag.StringVar(&f.wanted, "wanted", "", "fail unless all that is listed there has passed")
	flag.Parse()
	os.Exit(run(f, os.Stdin, os.Stdout, os.Stderr))
}

// files are lists of tests, as [report.again] makes them. Empty names are none.
type files struct{ again, wanted string }

func run(f files, stdin io.Reader, stdout, stderr io.Writer) int {
	well, err := f.report(stdin, stdout)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "testreport:", err)
	}
	if err != nil || !well {
		return 1
	}
	return 0
}

func (f files) report(stdin io.Reader, stdout io.Writer) (well bool, err error) {
	r := newReport(stdout)
	if err := r.read(stdin); err != nil {
		return false, err
	}
	if f.wanted != "" {
		list, err := os.ReadFile(f.wanted)
		if err != nil {
			return false, err
		}
		r.want(string(list))
	}
	well = r.finish()
	if f.again != "" {
		err = os.WriteFile(f.again, []byte(r.again()), 0o600)
	}
	return well, err
}
