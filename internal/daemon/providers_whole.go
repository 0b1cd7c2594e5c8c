//go:build !lean

package daemon

import (
	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/provider/all"
	"github.com/cove-sandbox/cove/provider/fake"
)

// ProviderNames returns the words that SANDBOX_PROVIDER may be in this build.
func ProviderNames() []string { return all.Names() }

// opening returns how to open each provider below a directory.
func opening(cfg config.Config, at provision) (map[string]func() (cove.Provider, error), error) {
	out, err := egressOf(cfg)
	if err != nil {
		return nil, err
	}
	return all.Providers(all.Config{Home: at.dir, Once: at.once, Keep: at.keep, Egress: out}), nil
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
		e.Secrets = append(e.Secrets, all.Secret{Name: name, Hosts: s.Hosts, Header: s.Header, Value: s.Value.Reveal(), Plain: s.Plain})
	}
	return e, nil
}

// pretend gives an engine the interpreters and the data runs that only pretend,
// where the provider that only pretends is. They compute in this process, and no
// sandbox bounds what they take.
func pretend(ec *engine.Config) {
	if pretends(ec) {
		ec.Kernels, ec.Runner = fake.Kernels{}, fake.Runner{}
	}
}
