//go:build !lean

package local

import (
	"net/netip"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

// Egress is what the operator says about the ways out of sandboxes.
type Egress struct {
	// Secrets are those that a sandbox may name.
	Secrets []Secret
	// Private are ranges of addresses that are not public and may be reached all
	// the same.
	Private []netip.Prefix
	// Limits are those of each sandbox.
	Limits Limits

	// world is where connections go, in tests.
	world egress.World
}

// Secret is a credential that requests get on their way out.
type Secret = egress.Secret

// Limits bounds the connections of a sandbox.
type Limits = egress.Limits

// check reports the first thing that is wrong.
func (e Egress) check() error {
	seen := map[string]bool{}
	for _, s := range e.Secrets {
		if err := s.Check(); err != nil {
			return err
		}
		if seen[s.Name] {
			return cove.InvalidField("secrets", "there are two with the name %s", s.Name)
		}
		seen[s.Name] = true
	}
	return egress.Config{Private: e.Private, Limits: e.Limits}.Check()
}

// allows reports a network that no sandbox can have.
func (e Egress) allows(n cove.Network) error {
	_, err := e.config(n, nil)
	return err
}

// config is what may leave a sandbox with this network.
func (e Egress) config(n cove.Network, ca *egress.Authority) (egress.Config, error) {
	c := egress.Config{Network: n, Private: e.Private, Limits: e.Limits, CA: ca}
	if len(n.Secrets) > 0 && (n.Mode == cove.NetworkNone || n.Mode == "") {
		return c, cove.InvalidField("network.secrets", "goes only with network.mode allow or open")
	}
	taken := map[string]bool{}
	for _, name := range n.Secrets {
		secret, ok := e.secret(name)
		if !ok {
			return c, cove.InvalidField("network.secrets", "%.80q is unknown; ask the operator which there are", name)
		}
		if !taken[name] {
			taken[name] = true
			c.Secrets = append(c.Secrets, secret)
		}
	}
	return c, c.Check()
}

func (e Egress) secret(name string) (Secret, bool) {
	for _, s := range e.Secrets {
		if s.Name == name {
			return s, true
		}
	}
	return Secret{}, false
}
