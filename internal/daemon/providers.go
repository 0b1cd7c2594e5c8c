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

// providers opens some providers of this build, with the settings in cfg.
func providers(cfg config.Config, as all.Config, names []string) ([]cove.Provider, error) {
	var err error
	if as.Egress, err = egressOf(cfg); err != nil {
		return nil, err
	}
	open := all.Providers(as)
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

// egressOf is what the settings say about the ways out of sandboxes.
func egressOf(cfg config.Config) (all.Egress, error) {
	private, err := cfg.Egress.Ranges()
	if err != nil {
		return all.Egress{}, cove.InvalidField("COVE_EGRESS_PRIVATE", "%.80q is not a range of addresses", err)
	}
	e := all.Egress{Private: private, Limits: all.Limits{
		Connections: cfg.Egress.Connections, PerSecond: cfg.Egress.PerSecond, Rate: cfg.Egress.Rate, Idle: cfg.Egress.Idle,
	}}
	for _, name := range cfg.Secrets.Names() {
		s := cfg.Secrets[name]
		e.Secrets = append(e.Secrets, all.Secret{Name: name, Hosts: s.Hosts, Header: s.Header, Value: s.Value.Reveal()})
	}
	return e, nil
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
	list, err := providers(cfg, all.Config{Home: dir}, all.Names())
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
