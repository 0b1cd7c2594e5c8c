//go:build !lean

package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/kernel"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// Verify attacks sandboxes of the provider that the settings choose, on this
// machine and without a server, and calls found with how each attempt went. It
// stops at the first error of found. It works also where COVE_HOME does not, and
// leaves nothing behind.
func Verify(ctx context.Context, cfg config.Config, found func(escape.Finding) error) (err error) {
	dir, err := os.MkdirTemp("", "cove-verify-*")
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "there is no room for temporary files").Remedy("set TMPDIR to a directory that can be written")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	list, err := providers(cfg, provision{dir: dir}, []string{cfg.Provider})
	if err != nil {
		return err
	}
	p := list[0]
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := ready(ctx, cfg, nil, list, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	for f, err := range escape.Run(ctx, p, escape.Options{Kernels: kernel.New()}) {
		if err != nil {
			return err
		}
		if err := found(f); err != nil {
			return err
		}
	}
	return nil
}
