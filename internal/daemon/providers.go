package daemon

import (
	"context"
	"errors"
	"os"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/provider/all"
	"github.com/cove-sandbox/cove/provider/fake"
)

// ProviderNames returns the words that SANDBOX_PROVIDER may be in this build.
func ProviderNames() []string { return all.Names() }

// providers opens some providers of this build.
func providers(cfg all.Config, names []string) ([]cove.Provider, error) {
	open := all.Providers(cfg)
	var list []cove.Provider
	for _, name := range names {
		p, err := open[name]()
		if err != nil {
			for _, opened := range list {
				err = errors.Join(err, opened.Close())
			}
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func kernels() cove.Kernels { return fake.Kernels{} }
func runner() cove.Runner   { return fake.Runner{} }

// Doctor says what each provider of this build can do here, without a server.
// It works also where COVE_HOME does not, and leaves nothing behind.
func Doctor(ctx context.Context, cfg config.Config) (reports []cove.ProviderReport, err error) {
	dir, err := os.MkdirTemp("", "cove-doctor-*")
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "there is no room for temporary files").Remedy("set TMPDIR to a directory that can be written")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	list, err := providers(all.Config{Home: dir}, all.Names())
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		defer func() { err = errors.Join(err, p.Close()) }()
		caps, err := p.Probe(ctx)
		if err != nil {
			caps.Ready, caps.Why = false, "it cannot be probed: "+cove.MessageOf(err)
		}
		reports = append(reports, cove.ProviderReport{Name: p.Name(), Default: p.Name() == cfg.Provider, Capabilities: caps})
	}
	return reports, nil
}
