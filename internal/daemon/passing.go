//go:build !lean

package daemon

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

// Passing runs a server of these settings in a COVE_HOME of its own, on a free
// port of this machine, and calls use with its address and a key for everything.
// The server ends when use returns, and nothing is left of it. Sessions that name no
// flavor have the one given, whatever the settings say. It is alone, and takes nothing
// that servers of the same settings share.
func Passing(ctx context.Context, cfg config.Config, version string, size cove.Resources, use func(ctx context.Context, url, key string) error) (err error) {
	dir, err := os.MkdirTemp("", "cove-passing-*")
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "there is no room for temporary files").Remedy("set TMPDIR to a directory that can be written")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	const flavor = "passing"
	cfg.Home, cfg.Server.Addr, cfg.Session.Flavor = filepath.Join(dir, "home"), "127.0.0.1:0", flavor
	cfg.ArchiveURL, cfg.Redis.URL = "", ""
	cfg.Flavors = maps.Clone(cfg.Flavors)
	cfg.Flavors[flavor] = size

	ready, ended := make(chan Ready, 1), make(chan error, 1)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // it ends after those who use it
	defer stop()
	go func() {
		ended <- Serve(serving, cfg, Options{Version: version, Logger: slog.New(slog.DiscardHandler), Ready: func(r Ready) { ready <- r }})
	}()
	select {
	case err := <-ended:
		return err
	case r := <-ready:
		key, err := os.ReadFile(r.KeyFile)
		if err == nil {
			err = use(ctx, r.URL, strings.TrimSpace(string(key)))
		}
		stop()
		return errors.Join(err, <-ended)
	}
}
