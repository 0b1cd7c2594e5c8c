//go:build linux

// Command cove-duckdb is DuckDB behind questions and answers: what runs inside a
// sandbox and does there whatever is asked of data in SQL. The package
// internal/duckdb/ask says what it is asked, and how.
//
// It must not be linked into cove, and it reads no setting but those that it is
// asked with. What it is asked has been judged before; it holds by itself that
// nothing but one SELECT is run, on nothing but the tables that were loaded.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

func main() {
	// The first thread has the largest stack, and the engine is called from here.
	runtime.LockOSThread()
	if len(os.Args) > 1 {
		if len(os.Args) == 2 && os.Args[1] == "functions" {
			os.Exit(report(printFunctions(os.Stdout)))
		}
		_, _ = io.WriteString(os.Stderr, "usage: cove-duckdb [functions], with requests on the standard input\n")
		os.Exit(2)
	}
	if err := settle(); err != nil {
		os.Exit(report(err))
	}
	os.Exit(report(serve(os.Stdin, os.Stdout, newSession(limitMemory))))
}

// report says what is wrong, and returns the status with which to end.
func report(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errBroken):
		_, _ = fmt.Fprintf(os.Stderr, "cove-duckdb: %.200v\n", err)
		return 3
	default:
		_, _ = fmt.Fprintf(os.Stderr, "cove-duckdb: %.200v\n", err)
		return 2
	}
}
