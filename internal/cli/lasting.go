//go:build !lean

package cli

import (
	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// leave returns an error for what only another program can do; there is none.
func leave(config.Config, cove.Spec) error { return nil }

// isForeign reports whether an error is for another program to tell.
func isForeign(error) bool { return false }

// lasting returns the platform for what stays: the server that the settings
// name, or that of COVE_HOME, which is started if nobody runs it.
func (a *app) lasting(cmd *cobra.Command) (link, error) {
	cfg, err := a.load(cmd)
	if err != nil {
		return link{}, err
	}
	if address, ok := cfg.Remote(); ok {
		return dial(cfg, address)
	}
	c, err := daemon.Connect(cmd.Context(), cfg, daemon.Caller{Version: version, Notify: a.note})
	if err != nil {
		return link{}, err
	}
	return link{Platform: c, cfg: cfg, apart: true, close: c.Close}, nil
}

func dial(cfg config.Config, address string) (link, error) {
	c, err := client.New(address, cfg.Client.APIKey.Reveal())
	if err != nil {
		return link{}, err
	}
	return link{Platform: c, cfg: cfg, apart: true, remote: true, close: c.Close}, nil
}
