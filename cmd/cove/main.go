//go:build !lean

// Command cove runs untrusted programs in sandboxes: it is the command line, the
// server and its client in one, and what runs inside where no leaner executable
// was built for that. It must not hold anything of its own: all of it is in
// internal/cli, where tests reach it.
package main

import (
	"os"

	"github.com/cove-sandbox/cove/internal/cli"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func main() {
	local.Main()
	if escape.Summoned(os.Args) {
		os.Exit(escape.Main(os.Args[1:]))
	}
	os.Exit(cli.Main())
}
