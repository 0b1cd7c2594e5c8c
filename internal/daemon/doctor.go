//go:build !lean

package daemon

import (
	"context"
	"errors"
	"os"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/provider/all"
)

// Doctor says what each provider of this build can do here, without a server, as
// [engine.Ladder] does.
// It works also where COVE_HOME does not, and leaves nothing behind.
func Doctor(ctx context.Context, cfg config.Config) (reports []cove.ProviderReport, err error) {
	dir, err := os.MkdirTemp("", "cove-doctor-*")
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "there is no room for temporary files").Remedy("set TMPDIR to a directory that can be written")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	found, err := openTemplates(ctx, cfg, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	list, err := providers(cfg, provision{dir: dir, templates: found}, all.Names())
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		defer func() { err = errors.Join(err, p.Close()) }()
	}
	return engine.Ladder(ctx, list, cfg.Provider, cfg.Fallback), ctx.Err()
}
