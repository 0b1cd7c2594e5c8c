//go:build !lean

package daemon

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/analyze"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/datarun"
	"github.com/cove-sandbox/cove/internal/dataset"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/duckexe"
)

// OneShotData is [OneShot] for a run that asks questions to data, on a provider or
// that of the settings if it is "". With files they are the only dataset, named
// [FilesDataset]; without, there are those of the settings.
func OneShotData(ctx context.Context, cfg config.Config, provider string, files []cove.RunFile) (*Local, error) {
	return oneShot(ctx, cfg, site{run: &cove.Spec{Provider: provider}, asks: true, files: files})
}

// FilesDataset is the dataset of the files of a run.
const FilesDataset = dataset.FilesID

// CheckFiles reports the first of some files that could not be asked, before they are
// sent somewhere: it is not there, not a file, or of no name for a table.
func CheckFiles(files []cove.RunFile) error {
	_, err := dataset.OfFiles(files)
	return err
}

// dataRuns gives an engine what answers questions to data. What the settings name
// must be there.
func dataRuns(ctx context.Context, a *assembly, ec *engine.Config, cfg config.Config, files []cove.RunFile) error {
	if err := sources(ctx, a, ec, cfg, files); err != nil {
		return err
	}
	duck := &ducks{dir: filepath.Join(cfg.Home, "tools")}
	if cfg.Runs.DuckDB != "" {
		tool, err := executable(cfg.Runs.DuckDB)
		if err != nil {
			return err
		}
		duck.driver = duckdb.New(tool, duckdb.Limits{})
		// What scripts/duckdb.sh prints has a packed copy beside it.
		if packed := filepath.Join(tool.Dir, tool.Name+".gz"); regular(packed) {
			duck.driver.Packed(func() (io.ReadCloser, error) { return os.Open(packed) }) //nolint:gosec // the operator's own setting
		}
	}
	if ec.Runners == nil {
		ec.Runners = map[string]cove.Runner{}
	}
	ec.Runners[""] = datarun.New(datarun.Config{Datasets: ec.Datasets, DuckDB: duck.get, Python: analyze.New()})
	return nil
}

// sources gives an engine its datasets.
func sources(ctx context.Context, a *assembly, ec *engine.Config, cfg config.Config, files []cove.RunFile) error {
	if len(files) > 0 {
		own, err := dataset.OfFiles(files)
		ec.Datasets = own
		return err
	}
	sets, err := datasets(ctx, cfg)
	if err != nil || sets == nil {
		return err
	}
	a.later(sets.Close)
	ec.Datasets = sets
	return nil
}

// datasets opens the directory of the settings, or returns nil where they name none.
func datasets(ctx context.Context, cfg config.Config) (*dataset.Registry, error) {
	if cfg.Datasets == "" {
		return nil, nil //nolint:nilnil // there need be none
	}
	r, err := dataset.Open(ctx, cfg.Datasets)
	if err != nil {
		return nil, err
	}
	home, err := filepath.EvalSymlinks(cfg.Home)
	if err != nil {
		home = cfg.Home
	}
	if home == r.Dir() || strings.HasPrefix(home, strings.TrimSuffix(r.Dir(), "/")+"/") {
		_ = r.Close()
		return nil, cove.InvalidField("COVE_DATASETS", "%.200q holds COVE_HOME, which no sandbox may see; use a directory of its own", cfg.Datasets)
	}
	return r, nil
}

// executable is a tool that the settings name by its path.
func executable(path string) (cove.Tool, error) {
	wrong := func(why any) error {
		return cove.InvalidField("COVE_DUCKDB", "%.200q cannot be used: %v", path, why).Remedy("unset it, or set it to what scripts/duckdb.sh prints")
	}
	real, err := filepath.Abs(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return cove.Tool{}, wrong(err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return cove.Tool{}, wrong(err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return cove.Tool{}, wrong("it is no executable file")
	}
	return cove.Tool{
		Name: filepath.Base(real), Dir: filepath.Dir(real), ID: fmt.Sprintf("%d.%d", info.Size(), info.ModTime().UnixNano()),
	}, nil
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// ducks has the driver of DuckDB, whose executable is written to a file when it is
// first needed: most runs of cove never do.
type ducks struct {
	dir string

	mu     sync.Mutex
	driver *duckdb.Driver // guarded by mu
}

func (d *ducks) get() (*duckdb.Driver, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.driver == nil {
		if err := os.MkdirAll(d.dir, 0o700); err != nil {
			return nil, homeError(filepath.Dir(d.dir), err)
		}
		tool, err := duckexe.Installed(d.dir)
		if err != nil {
			return nil, err
		}
		d.driver = duckdb.New(tool, duckdb.Limits{}).Packed(duckexe.Packed)
	}
	return d.driver, nil
}
