package config

import (
	"errors"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Regions are other clusters by name.
type Regions map[string]Region

// Region is a cluster, and what belongs there.
type Region struct {
	Nodes    []string          // where its nodes are reached by others, as COVE_NODE_ADDR says there
	Tenants  []string          // all that these do is done there
	Metadata map[string]string // a session with all of these is opened there
}

// Names returns the names, sorted.
func (r Regions) Names() []string { return slices.Sorted(maps.Keys(r)) }

const regionExample = "{nodes: [10.1.0.5:8100], tenants: [acme], metadata: {region: eu}}"

func (r *Regions) fromNode(n node) error {
	all := Regions{}
	for _, b := range n.tree {
		if !plainName(b.key) {
			return atLine(b.line, "%.80q is not a name; use up to 64 small letters, digits, - . and _", b.key)
		}
		if b.node.kind != isTree {
			return atLine(b.line, "%s is %s; write it as %s", b.key, b.node.kind, regionExample)
		}
		var one Region
		for _, f := range b.node.tree {
			if err := one.set(f); err != nil {
				return atLine(f.line, "%s.%.80s: %s", b.key, f.key, err)
			}
		}
		if len(one.Nodes) == 0 {
			return atLine(b.line, "%s lacks nodes; write it as %s", b.key, regionExample)
		}
		all[b.key] = one
	}
	*r = all
	return nil
}

func (r *Region) set(b branch) (err error) {
	switch b.key {
	case "nodes":
		r.Nodes, err = b.node.words()
		for _, at := range r.Nodes {
			if host, port, serr := net.SplitHostPort(at); serr != nil || host == "" || port == "" {
				return errors.New("an address has a host and a port, such as 10.1.0.5:8100")
			}
		}
	case "tenants":
		r.Tenants, err = b.node.words()
		for _, t := range r.Tenants {
			if terr := cove.ValidTenant(t); terr != nil {
				return errors.New(strings.TrimPrefix(cove.MessageOf(terr), "tenant: "))
			}
		}
	case "metadata":
		if b.node.kind != isTree {
			return errors.New("is " + string(b.node.kind) + "; write names and values, such as {region: eu}")
		}
		r.Metadata = map[string]string{}
		for _, m := range b.node.tree {
			if m.node.kind != isText {
				return errors.New("is " + string(m.node.kind) + "; write a single value")
			}
			r.Metadata[m.key] = m.node.text
		}
	default:
		return errors.New("is not a setting; use nodes, tenants and metadata")
	}
	return err
}

// inline is a region as the file has it, in one line.
func (r Region) inline() string {
	list := func(words []string) string {
		out := make([]string, len(words))
		for i, w := range words {
			out[i] = quoted(w)
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	text := "{nodes: " + list(r.Nodes)
	if len(r.Tenants) > 0 {
		text += ", tenants: " + list(r.Tenants)
	}
	if len(r.Metadata) > 0 {
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
			pairs = append(pairs, quoted(name)+": "+quoted(r.Metadata[name]))
		}
		text += ", metadata: {" + strings.Join(pairs, ", ") + "}"
	}
	return text + "}"
}

// checkRegions wants a name for this cluster where there are others, and one place
// for each tenant.
func (l *loader) checkRegions() error {
	c := &l.config
	if len(c.Regions) == 0 {
		return nil
	}
	if c.Redis.URL == "" || c.Redis.Region == "" {
		return l.wrong("regions", "is set and REDIS_URL or COVE_REGION is not; set both, so that this cluster is one of them")
	}
	if !plainName(c.Redis.Region) {
		return l.wrong("COVE_REGION", "%.80q is not the name of a region; use up to 64 small letters, digits, - . and _", c.Redis.Region)
	}
	where := map[string]string{}
	for _, name := range c.Regions.Names() {
		for _, t := range c.Regions[name].Tenants {
			if other, twice := where[t]; twice {
				return l.wrong("regions", "tenant %s is in %s and in %s; keep one", t, other, name)
			}
			where[t] = name
		}
	}
	return nil
}
