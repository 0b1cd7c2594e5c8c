// Command cove-agent is the first process of a sandbox, and under another name
// the process that makes sandboxes: what runs often and must start fast, apart
// from the rest. It must not hold anything of its own.
package main

import (
	"os"

	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/mailbox"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

func main() {
	if os.Args[0] == fence.Name {
		os.Exit(fence.Main(fence.DefaultFD))
	}
	if len(os.Args) > 1 && os.Args[1] == mailbox.Name {
		os.Exit(mailbox.Main(os.Args[2:]))
	}
	os.Exit(agent.Main(agent.DefaultFD))
}
