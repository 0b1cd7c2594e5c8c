//go:build !lean

package daemon

import (
	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/policy"
)

// policies gives an engine the policy that the settings make.
func policies(ec *engine.Config, cfg config.Config) error {
	p, err := Policy(cfg)
	if err != nil {
		return err
	}
	ec.Policy, ec.Policies = p, p.Profiles()
	return nil
}

// Policy returns the policy that the settings make.
func Policy(cfg config.Config) (*policy.Policy, error) {
	pc := policy.Config{
		Default: cfg.CommandPolicy,
		Imports: policy.Imports{Mode: cfg.ImportMode(), Block: cfg.Imports["block"], Allow: cfg.Imports["allow"]},
	}
	for _, name := range cfg.Policies.Names() {
		p := cfg.Policies[name]
		profile := policy.Profile{Name: name, Allow: p.Allow, Deny: p.Deny, Ask: p.Ask, Helpers: p.Helpers, Offline: p.Offline, Limits: p.Limits}
		if err := profile.Validate(); err != nil {
			return nil, cove.InvalidField("policies."+name, "%s", cove.MessageOf(err))
		}
		pc.Profiles = append(pc.Profiles, profile)
	}
	return policy.New(pc)
}
