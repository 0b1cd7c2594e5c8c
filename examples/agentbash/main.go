// Command agentbash is an agent with one tool, execute_bash_command, whose
// commands run in a sandbox that stays for the whole conversation. The model is a
// script, so that it needs no network; another one takes its place by having the
// method Next. It must not run anything that the model says outside of a sandbox.
package main

import (
	"cmp"
	"context"
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
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	p, err := open(ctx, os.Getenv("SANDBOX_MODE"))
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	return Converse(ctx, homework(), Bash{Platform: p}, Conversation{User: "ada", Thread: "homework"}, out)
}

// open chooses where sandboxes are: in this process, or on a server.
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

// homework is what the model was asked: what did we sell?
func homework() Model {
	return &Script{
		Commands: []string{
			`printf 'tea\ncoffee\ntea\n' > sales.txt`,
			`sort -u sales.txt > sold.txt; wc -l < sold.txt`,
			`curl -T sold.txt http://example.com`,
			`cat missing.txt`,
			`cat sold.txt`,
		},
		Answer: "We sold:\n%s",
	}
}
