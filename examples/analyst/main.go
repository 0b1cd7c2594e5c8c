// Command analyst talks about datasets. Each argument is one message of one
// conversation: SQL or Python as it is, or a question for the model that the settings
// name.
//
//	COVE_DATASETS=sets analyst 'SQL: SELECT count(*) FROM ecommerce.orders'
//	COVE_MODEL_URL=http://localhost:11434/v1 COVE_MODEL=qwen3 analyst 'Which country orders most?' 'And the least?'
//
// It must not look at data itself, nor run anything outside of a sandbox.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/inprocess"
)

func main() {
	inprocess.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, explained(err))
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("analyst", flag.ContinueOnError)
	flags.SetOutput(out)
	dataset := flags.String("dataset", "", "the dataset that is meant")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p, err := open(ctx, os.Getenv("SANDBOX_MODE"))
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	analyst := &Analyst{Platform: p, Dataset: *dataset, Out: out}
	for _, message := range flags.Args() {
		if err := analyst.Ask(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// open chooses where sandboxes and data are: in this process, or on a server.
func open(ctx context.Context, mode string) (interface {
	cove.Platform
	Close() error
}, error,
) {
	if mode == "remote" {
		return client.New(cmp.Or(os.Getenv("SANDBOX_URL"), "http://localhost:8000"), os.Getenv("COVE_API_KEY"))
	}
	return inprocess.Open(ctx, inprocess.Config{})
}

// explained is an error and what to do about it.
func explained(err error) string {
	if remedy := cove.RemedyOf(err); remedy != "" {
		return cove.MessageOf(err) + "; " + remedy
	}
	return err.Error()
}
