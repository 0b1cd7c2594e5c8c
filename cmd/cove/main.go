// Command cove runs untrusted programs in sandboxes: it is the command line, the
// server and its client in one. It must not hold anything of its own: all of it
// is in internal/cli, where tests reach it.
package main

import (
	"os"

	"github.com/cove-sandbox/cove/internal/cli"
)

func main() { os.Exit(cli.Main()) }
