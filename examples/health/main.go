// Command health says whether a server can do its work: not only that it answers,
// but that a sandbox can be made, run something, keep a file and be ended. It is
// for monitors: it ends with 0 or 1 and prints a line for each step. It must not
// leave anything on the server.
//
//	COVE_URL=http://127.0.0.1:8000 COVE_API_KEY=… health
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cove-sandbox/cove/client"
)

// patience bounds the whole check.
const patience = 30 * time.Second

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	ok := run(ctx, os.Getenv("COVE_URL"), os.Getenv("COVE_API_KEY"), os.Stdout)
	cancel()
	if !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, url, key string, out io.Writer) bool {
	p, err := client.New(url, key, client.WithAutoRetry(false)) // a check hides nothing
	if err != nil {
		_, _ = fmt.Fprintln(out, "unhealthy:", err)
		return false
	}
	defer func() { _ = p.Close() }()
	healthy := true
	for _, s := range Check(ctx, p) {
		healthy = healthy && s.Err == nil
		_, _ = fmt.Fprintln(out, s)
	}
	return healthy
}
