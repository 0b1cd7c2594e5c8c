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

// leastFree is how much of its disk a server needs to begin anything: what the journal
// and the database set aside, and some.
const leastFree = 3 * cove.MiB

// FullHome returns what is to be done where the disk of COVE_HOME is full, or nil.
func FullHome(cfg config.Config) error {
	free, err := freeSpace(cfg.Home)
	if err != nil || free >= leastFree {
		return nil //nolint:nilerr // a home that is not there yet is made by the command that needs it, which tells of errors
	}
	return cove.Errorf(cove.Exhausted, "the disk of COVE_HOME %s is full: %s free, %s needed", cfg.Home, free, leastFree).
		Reason(cove.ReasonDiskReserve).
		Remedy("free space in the file system of %s; sessions can be closed and snapshots deleted meanwhile, and the server then goes on by itself", cfg.Home)
}

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
