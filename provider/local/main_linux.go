package local

import (
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/keeper"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// answers says that this executable is an agent when it is started as one.
var answers atomic.Bool

// Main makes this executable one that can be an agent, a spawner and a keeper:
// when it was started as one of them, it is that, and Main does not return. A program that
// makes local sandboxes calls it first in main, unless it was built with an
// agent in it. Without, it would start copies of itself that do not know what
// they were started for; so the provider refuses to.
func Main() {
	switch filepath.Base(os.Args[0]) {
	case agent.Name:
		os.Exit(agent.Main(agent.DefaultFD))
	case fence.Name:
		os.Exit(fence.Main(fence.DefaultFD))
	case keeper.Name:
		if len(os.Args) != 4 {
			os.Exit(1)
		}
		code := keeper.Main(keeper.DefaultFD, os.Args[1])
		clearGroups(os.Args[1], os.Args[2], os.Args[3])
		os.Exit(code)
	}
	answers.Store(true)
}

// agentPath returns the executable to start agents from.
func agentPath(cfg Config) (string, error) {
	if cfg.Agent != "" {
		return cfg.Agent, nil
	}
	find := guest.Executable
	if cfg.Once {
		find = func() (string, error) { return guest.Installed(cfg.Dir) }
	}
	path, err := find()
	if err == nil && path == guest.Self && !answers.Load() {
		return "", cove.Errorf(cove.Unavailable, "this program cannot be the agent of a sandbox").
			Remedy("call local.Main first in its main, or build it with the agent embedded, as make build does")
	}
	return path, err
}
