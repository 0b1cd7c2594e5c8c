//go:build linux

// Command cove-agent is the first process of a sandbox, as an executable of its
// own: small to load and to hold in memory, as the whole of cove is not. It
// must not hold anything but the call of the agent: people never start it.
package main

import (
	"os"

	"github.com/cove-sandbox/cove/internal/guest/agent"
)

func main() { os.Exit(agent.Main(agent.DefaultFD, nil)) }
