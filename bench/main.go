// Command bench measures what Cove promises about speed and prints its tables:
// each row is a ratio or a difference against a baseline taken in the same run,
// because machines differ and are noisy. It exits 1 when a row misses what it
// must reach. It must not be used to assert anything in a unit test.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/measure"
	"github.com/cove-sandbox/cove/provider/local"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options is what the flags say.
type options struct {
	document       string
	only           string
	scale, samples int
	local          localOptions
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.document, "write", "", "put the tables into this document, between its bench markers")
	flags.StringVar(&o.only, "only", "", "measure only this part: local or engine")
	flags.IntVar(&o.scale, "scale", 10_000, "how many sessions the engine's flatness is measured with")
	flags.IntVar(&o.samples, "samples", 400, "how often each thing of the engine is measured")
	flags.IntVar(&o.local.rounds, "rounds", 400, "how often each contender of the local provider runs")
	flags.IntVar(&o.local.churn, "churn", 1000, "how many sandboxes are made and destroyed to see what is left")
	flags.StringVar(&o.local.cove, "cove", "bin/cove", "the executable for cove run")
	flags.StringVar(&o.local.judge, "judge", "", "the executable of go-judge")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case o.only != "" && o.only != "local" && o.only != "engine":
		return o, fmt.Errorf("-only %s: use local or engine", o.only)
	case o.document != "" && o.only != "":
		return o, errors.New("-write goes with all parts; leave -only out")
	case min(o.scale, o.samples, o.local.rounds, o.local.churn) < 1:
		return o, errors.New("-scale, -samples, -rounds and -churn start at 1")
	}
	return o, nil
}

// run measures everything and writes the tables to out, and into a document
// when asked to.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	var text strings.Builder
	var all []row
	text.WriteString(described(measure.ThisMachine(), o))
	if o.only != "engine" {
		found, err := measureLocal(ctx, o.local, openLocal)
		if err != nil {
			return err
		}
		rows, err := found.rows()
		if err != nil {
			return err
		}
		text.WriteString("\n" + render(rows) + "\n" + renderPeers(found))
		all = append(all, rows...)
	}
	if o.only != "local" {
		rows, err := engineRows(ctx, o.scale, o.samples)
		if err != nil {
			return err
		}
		text.WriteString("\n" + render(rows))
		all = append(all, rows...)
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	if o.document != "" {
		if err := writeInto(o.document, text.String()); err != nil {
			return err
		}
	}
	return missed(all)
}

// described is the sentence about the machine.
func described(m measure.Machine, o options) string {
	who := "an ordinary user"
	if m.AsRoot {
		who = "root"
	}
	return fmt.Sprintf("Measured on %d cores (%s), %s, %s, as %s, in %d rounds.\n", m.Cores, m.Arch, m.OS, m.Go, who, o.local.rounds)
}

// openLocal opens the local provider as a server does. Without the lean agent
// this program would have to be the agent, and would measure itself.
func openLocal(dir string) (cove.Provider, error) {
	agent, err := guest.Executable()
	if err != nil {
		return nil, err
	}
	if agent == "/proc/self/exe" {
		return nil, errors.New("this build has no lean agent in it; run make bench")
	}
	p, err := local.New(local.Config{Dir: dir})
	if err != nil {
		return nil, told(err)
	}
	return p, nil
}
