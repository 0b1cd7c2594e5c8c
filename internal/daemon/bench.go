//go:build !lean

package daemon

import (
	"context"
	"errors"
	"os"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/measure"
	"github.com/cove-sandbox/cove/provider/all"
)

// Bench measures the provider that the settings choose, on this machine and
// without a server. It works also where COVE_HOME does not, and leaves nothing
// behind.
func Bench(ctx context.Context, cfg config.Config, m measure.Config) (r measure.Report, err error) {
	if err := buildable(cfg); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "cove-bench-*")
	if err != nil {
		return r, cove.Wrap(cove.Unavailable, err, "there is no room for temporary files").Remedy("set TMPDIR to a directory that can be written")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := all.Providers(all.Config{Home: dir})[cfg.Provider]()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	stage, err := measure.Open(ctx, p)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stage.Close(ctx)) }()
	return stage.Run(ctx, m)
}
