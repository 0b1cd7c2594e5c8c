//go:build !lean

package daemon

import (
	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/provider/all"
)

// ProviderNames returns the words that SANDBOX_PROVIDER may be in this build.
func ProviderNames() []string { return all.Names() }

// opening returns how to open each provider below a directory.
func opening(cfg config.Config, at provision) (map[string]func() (cove.Provider, error), error) {
	out, err := egressOf(cfg)
	if err != nil {
		return nil, err
	}
	c := all.Config{
		Home: at.dir, Once: at.once, Keep: at.keep, Egress: out, Reserve: cfg.Session.DiskReserve, Memory: cfg.SandboxMemory(),
		Gvisor: all.Gvisor{Agent: at.agent, Runsc: cfg.Gvisor.Runsc, Platform: cfg.Gvisor.Platform},
		Docker: all.Docker{
			Host: cfg.Docker.Host, TLSVerify: cfg.Docker.TLSVerify, CertPath: cfg.Docker.CertPath, Image: cfg.Docker.Image, Runtime: cfg.Docker.Runtime,
			Network: cfg.Docker.Network, Agent: at.agent,
		},
		Microsandbox: all.Microsandbox{
			Transport: cfg.Microsandbox.Transport, ServerURL: cfg.Microsandbox.ServerURL, APIKey: cfg.Microsandbox.APIKey.Reveal(), Namespace: cfg.Microsandbox.Namespace,
			Program: cfg.Microsandbox.Program, Image: cfg.Microsandbox.Image, CPUs: cfg.Microsandbox.CPUs, Memory: cfg.Microsandbox.Memory, StartTimeout: cfg.Session.StartTimeout, Agent: at.agent,
		},
		E2B: all.E2B{
			APIKey: cfg.E2B.APIKey.Reveal(), APIURL: cfg.E2B.APIURL, SandboxURL: cfg.E2B.SandboxURL, Domain: cfg.E2B.Domain,
			Template: cfg.E2B.Template, Timeout: cfg.E2B.Timeout, Most: cfg.E2B.Most, CPUHour: cfg.E2B.CPUHour, MemoryHour: cfg.E2B.MemoryHour, Agent: at.agent,
		},
	}
	if at.templates != nil {
		c.Templates = at.templates
	}
	return all.Providers(c), nil
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
