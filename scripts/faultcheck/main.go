// Command faultcheck reads a history that the fault test of clusters has left, and
// says what is in it and which rules it breaks. It exits with 1 where there are any.
//
// It must not talk to a cluster: all that it knows is in the file.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

func main() {
	ok, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "faultcheck:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// run reports whether the history keeps the rules.
func run(args []string, out io.Writer) (bool, error) {
	if len(args) != 1 {
		return false, fmt.Errorf("usage: faultcheck HISTORY")
	}
	f, err := os.Open(args[0]) //nolint:gosec // whoever runs it names the file
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was read
	h, err := history.Load(f)
	if err != nil {
		return false, err
	}
	r := history.Check(h)
	_, err = fmt.Fprintf(out, "seed %d: %s\n", h.Run.Seed, r.Counts)
	for _, v := range r.Violations {
		_, _ = fmt.Fprintln(out, v)
	}
	if len(h.Events) == 0 {
		return false, fmt.Errorf("%s has nothing in it", args[0])
	}
	return len(r.Broken) == 0, err
}
