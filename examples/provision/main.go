// Command provision runs an agent's work on a project in a sandbox of its own:
// the sandbox is made when the agent starts, gets a copy of the project, runs what
// the agent wants run, gives its results back and is gone when the agent ends. It
// must not touch the project's own folder.
//
//	provision FOLDER COMMAND...
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
)

func main() {
	inprocess.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) < 2 {
		return errors.New("usage: provision FOLDER COMMAND")
	}
	p, err := inprocess.Open(ctx, inprocess.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return agent(ctx, p, args[0], args[1:], out)
}

// agent is the work: each command in turn until one fails, and then the report.
func agent(ctx context.Context, p cove.Platform, project string, commands []string, out io.Writer) (err error) {
	box, err := Provision(ctx, p, project)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close(ctx)) }()
	for _, c := range commands {
		x, err := box.Run(ctx, c)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "$ %s\n%s%s", c, x.Stdout.Data, x.Stderr.Data); err != nil {
			return err
		}
		if x.Outcome != cove.Exited || x.ExitCode != 0 {
			_, err := fmt.Fprintf(out, "%s with exit code %d\n", x.Outcome, x.ExitCode)
			return err
		}
	}
	report, err := box.Report(ctx, "report.txt")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "report: %s\n", report)
	return err
}
