package egress

import (
	"net/netip"

	"github.com/cove-sandbox/cove"
)

// Settings is what an operator says about the ways out of all sandboxes of a
// provider.
type Settings struct {
	// Secrets are those that a sandbox may name.
	Secrets []Secret
	// Private are ranges of addresses that are not public and may be reached all
	// the same.
	Private []netip.Prefix
	// Limits are those of each sandbox.
	Limits Limits
	// World is where connections go; nil is this machine's.
	World World
}

// Check reports the first thing that is wrong.
func (e Settings) Check() error {
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
	return Config{Private: e.Private, Limits: e.Limits}.Check()
}

// Allows reports a network that no sandbox can have.
func (e Settings) Allows(n cove.Network) error {
	_, err := e.For(n, nil)
	return err
}

// For is what may leave a sandbox with this network.
func (e Settings) For(n cove.Network, ca *Authority) (Config, error) {
	c := Config{Network: n, Private: e.Private, Limits: e.Limits, CA: ca}
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

func (e Settings) secret(name string) (Secret, bool) {
	for _, s := range e.Secrets {
		if s.Name == name {
			return s, true
		}
	}
	return Secret{}, false
}
