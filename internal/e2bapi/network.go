package e2bapi

import (
	"encoding/json"
	"net/netip"
	"slices"

	"github.com/cove-sandbox/cove"
)

// allTraffic is their word for every address.
const allTraffic = "0.0.0.0/0"

// networkConfig is what a sandbox may reach and who may reach it.
type networkConfig struct {
	Allow  []string        `json:"allowOut,omitempty"`
	Deny   []string        `json:"denyOut,omitempty"`
	Rules  json.RawMessage `json:"rules,omitempty"`
	Proxy  json.RawMessage `json:"egressProxy,omitempty"`
	Public *bool           `json:"allowPublicTraffic,omitempty"`
	Mask   string          `json:"maskRequestHost,omitempty"`
	HTTPS  []int           `json:"httpsPorts,omitempty"`
}

// silent reports whether nothing is said about what a sandbox may reach.
func (n networkConfig) silent() bool { return len(n.Allow) == 0 && len(n.Deny) == 0 }

// ceiling is the most that a sandbox may reach which E2B's clients open, copy or change.
type ceiling cove.NetworkMode

// exceeds reports whether a mode lets a sandbox reach more than the ceiling does.
func (c ceiling) exceeds(mode cove.NetworkMode) bool {
	modes := []cove.NetworkMode{cove.NetworkNone, cove.NetworkAllow, cove.NetworkOpen}
	return slices.Index(modes, mode) > slices.Index(modes, cove.NetworkMode(c))
}

// ceiling is the one that the settings say.
func (h *Handler) ceiling() ceiling { return ceiling(h.cfg.Network) }

// usual is the network of a sandbox whose client asks for none in particular; "" leaves
// it to the key, which has a network of its own.
func (c ceiling) usual(ofKey cove.NetworkMode) cove.NetworkMode {
	switch {
	case ofKey != "" && !c.exceeds(ofKey):
		return ""
	case cove.NetworkMode(c) == cove.NetworkOpen:
		return cove.NetworkOpen
	}
	return cove.NetworkNone // a list without hosts allows nothing
}

// refuse reports a network that is more than the ceiling.
func (c ceiling) refuse(mode cove.NetworkMode) error {
	if !c.exceeds(mode) {
		return nil
	}
	return cove.Errorf(cove.Denied, "network: the sandbox would have the network %s, and COVE_E2B_NETWORK is %s, the most that E2B clients may give to a sandbox", mode, string(c)).
		With("field", "network").Remedy("ask for less network, or have the operator raise COVE_E2B_NETWORK")
}

// translate returns the network that is meant, or names the first thing that no
// sandbox here can be held to. usual is what silence means; "" leaves it to the key.
func (n networkConfig) translate(internet *bool, usual cove.NetworkMode) (cove.Network, error) {
	if err := n.unsupported(); err != nil {
		return cove.Network{}, err
	}
	nothingElse := internet != nil && !*internet || len(n.Deny) > 0
	for _, d := range n.Deny {
		if d != allTraffic {
			return cove.Network{}, notHere("network.denyOut", "rules against single addresses").Remedy("deny %s and allow the hosts it may reach by name", allTraffic)
		}
	}
	for _, a := range n.Allow {
		switch {
		case a == allTraffic: // what is allowed wins
			return cove.Network{Mode: cove.NetworkOpen}, nil
		case isAddress(a):
			return cove.Network{}, notHere("network.allowOut", "rules for addresses").Remedy("allow hosts by name, such as pypi.org or *.github.com")
		}
	}
	switch {
	case len(n.Allow) > 0 && !nothingElse:
		return cove.Network{}, cove.InvalidField("network.allowOut", "names hosts, but nothing else is denied; add %s to denyOut", allTraffic)
	case len(n.Allow) > 0:
		return cove.Network{Mode: cove.NetworkAllow, Allow: n.Allow}, nil
	case nothingElse:
		return cove.Network{Mode: cove.NetworkNone}, nil
	case internet != nil:
		return cove.Network{Mode: cove.NetworkOpen}, nil
	}
	return cove.Network{Mode: usual}, nil
}

func (n networkConfig) unsupported() error {
	switch {
	case isThere(n.Rules):
		return notHere("network.rules", "rules that change requests").Remedy("name secrets of the operator in a session of Cove's own API instead")
	case isThere(n.Proxy):
		return notHere("network.egressProxy", "proxy of their own")
	case n.Mask != "":
		return notHere("network.maskRequestHost", "other host for requests to them")
	case len(n.HTTPS) > 0:
		return notHere("network.httpsPorts", "ports that are reached over HTTPS inside")
	}
	return nil
}

// isAddress reports whether a text is an address or a range of them.
func isAddress(text string) bool {
	if _, err := netip.ParsePrefix(text); err == nil {
		return true
	}
	_, err := netip.ParseAddr(text)
	return err == nil
}

// networkAnswer says what a sandbox may reach as its client would have asked for it.
func networkAnswer(s cove.Spec) networkConfig {
	n := networkConfig{Allow: s.Network.Allow, Public: &s.PublicPorts}
	if s.Network.Mode != cove.NetworkOpen {
		n.Deny = []string{allTraffic}
	}
	return n
}

// setNetwork replaces what a sandbox may reach.
func (c *call) setNetwork() error {
	var b struct {
		networkConfig

		Internet *bool `json:"allow_internet_access"`
	}
	id, err := c.target()
	if err != nil {
		return err
	}
	if err := c.body(&b); err != nil {
		return err
	}
	most := c.h.ceiling()
	n, err := b.translate(b.Internet, most.usual(""))
	if err == nil {
		err = most.refuse(n.Mode)
	}
	if err != nil {
		return err
	}
	if _, err := c.platform.Sessions().SetNetwork(c.r.Context(), id, n); err != nil {
		return err
	}
	c.done()
	return nil
}
