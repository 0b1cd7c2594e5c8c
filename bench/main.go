// Command bench measures what Cove promises about speed and prints one table:
// each row is a ratio or a difference against a baseline taken in the same run,
// because machines differ and are noisy. It exits 1 when a row misses what it
// must reach. It must not be used to assert anything in a unit test.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures everything and writes the table to out, and into a document
// when asked to.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	document := flags.String("write", "", "put the table into this document, between its bench markers")
	scale := flags.Int("scale", 10_000, "how many sessions the flatness is measured with")
	samples := flags.Int("samples", 400, "how often each thing is measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	rows, err := engineRows(ctx, *scale, *samples)
	if err != nil {
		return err
	}
	table := render(rows)
	if _, err := io.WriteString(out, table); err != nil {
		return err
	}
	if *document != "" {
		if err := writeInto(*document, table); err != nil {
			return err
		}
	}
	return missed(rows)
}
