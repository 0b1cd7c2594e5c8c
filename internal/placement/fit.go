package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// fitting returns the nodes that could serve if they had room, each once: those
// whose default or named provider would, and those where another would instead.
func fitting(nodes []cove.Node, w Want) (first, instead tier, err error) {
	left, err := ready(nodes, w.Pin)
	if err != nil {
		return first, instead, err
	}
	first.room = make([]*cove.Node, 0, len(left)) // mostly, all of them
	for _, n := range left {
		p, other := server(n, w)
		switch {
		case p == nil || !meets(p, w.Isolation) || !hasTemplate(n, w.Template) || !holds(n, w):
		case other:
			instead.add(n, w)
		default:
			first.add(n, w)
		}
	}
	if first.empty() && instead.empty() {
		return first, instead, missing(left, w)
	}
	return first, instead, nil
}

// ready returns the nodes that are given new sessions, each once.
func ready(nodes []cove.Node, pin string) ([]*cove.Node, error) {
	left := make([]*cove.Node, 0, len(nodes))
	once := true // as in a list by name
	for i := range nodes {
		n := &nodes[i]
		if n.State != cove.NodeReady || pin != "" && n.ID != pin {
			continue
		}
		once = once && (len(left) == 0 || left[len(left)-1].ID < n.ID)
		left = append(left, n)
	}
	switch {
	case len(left) > 0 && once:
		return left, nil
	case len(left) > 0:
		slices.SortStableFunc(left, func(a, b *cove.Node) int { return cmp.Compare(a.ID, b.ID) })
		return slices.CompactFunc(left, func(a, b *cove.Node) bool { return a.ID == b.ID }), nil
	case pin != "":
		return nil, cove.Errorf(cove.Unavailable, "the files are on node %.60q, which %s", pin, stateOf(nodes, pin)).Reason(cove.ReasonNodeAway).
			Remedy("start the node or uncordon it, and try again")
	}
	return nil, cove.Errorf(cove.Unavailable, "no node takes new sessions: of %d none is ready", len(nodes)).
		Remedy("start a node or uncordon one")
}

func stateOf(nodes []cove.Node, id string) string {
	i := slices.IndexFunc(nodes, func(n cove.Node) bool { return n.ID == id })
	if i < 0 {
		return "is not there"
	}
	return fmt.Sprintf("is %.20s", nodes[i].State)
}

// server returns the provider of a node that would serve, or nil, as the engine
// chooses it: the one that is named, or the default; and if that is not ready and
// the operator wrote an order, the first of these. A default that is too weak is
// no reason to take another.
func server(n *cove.Node, w Want) (p *cove.NodeProvider, instead bool) {
	if w.Provider != "" {
		return named(n, w.Provider), false
	}
	for i := range n.Providers {
		if n.Providers[i].Default {
			return &n.Providers[i], false
		}
	}
	for _, name := range w.Fallback {
		if p := named(n, name); p != nil {
			return p, true
		}
	}
	return nil, false
}

func named(n *cove.Node, name string) *cove.NodeProvider {
	for i := range n.Providers {
		if n.Providers[i].Name == name {
			return &n.Providers[i]
		}
	}
	return nil
}

func meets(p *cove.NodeProvider, floor cove.Boundary) bool {
	return floor == "" || p.Boundary.AtLeast(floor)
}

// baseTemplate is the one that every provider has.
const baseTemplate = "base"

func hasTemplate(n *cove.Node, template string) bool {
	return template == "" || template == baseTemplate || slices.Contains(n.Templates, template)
}

// missing returns why none of the nodes will do. One need after the other is
// looked at, so that the error names the first that nobody meets, among those that
// meet the ones before it.
func missing(nodes []*cove.Node, w Want) error {
	with := filter(nodes, func(n *cove.Node) bool { p, _ := server(n, w); return p != nil })
	if len(with) == 0 && w.Provider == "" {
		return cove.Errorf(cove.Unavailable, "no node has its default provider ready, nor one that may serve instead; %s", tell(nodes, providersOf)).
			Remedy("name a provider that is there, or see cove doctor on the nodes")
	}
	if len(with) == 0 {
		return cove.Errorf(cove.Unsupported, "provider: no node has %.40q ready; %s", w.Provider, tell(nodes, providersOf)).
			With("field", "provider").Remedy("name one of these, or see cove doctor on the nodes")
	}
	strong := filter(with, func(n *cove.Node) bool { p, _ := server(n, w); return meets(p, w.Isolation) })
	if len(strong) == 0 {
		return cove.Errorf(cove.Unsupported, "require.isolation: %.20s is wanted, and no node gives it with the provider that would serve; %s", w.Isolation, tell(with, providersOf)).
			With("field", "require.isolation").Remedy("name a provider with a stronger boundary, or start a node that has one")
	}
	filled := filter(strong, func(n *cove.Node) bool { return hasTemplate(n, w.Template) })
	if len(filled) == 0 {
		return cove.Errorf(cove.Unsupported, "template: no node that would do otherwise has %.60q; %s", w.Template, tell(strong, templatesOf)).
			With("field", "template").Remedy("use one of these, or build it on a node: cove template build %.60s", w.Template)
	}
	return cove.Errorf(cove.Exhausted, "%s of memory is more than any node has in all; %s", w.Memory, tell(filled, memoryOf)).
		Reason(cove.ReasonCapacity).Remedy("ask for less, or start a larger node")
}

func filter(nodes []*cove.Node, keep func(*cove.Node) bool) []*cove.Node {
	var kept []*cove.Node
	for _, n := range nodes {
		if keep(n) {
			kept = append(kept, n)
		}
	}
	return kept
}

// tell says of the first few nodes what each has. What nodes say of themselves is
// cut short.
func tell(nodes []*cove.Node, what func(*cove.Node) string) string {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b *cove.Node) int { return cmp.Compare(a.ID, b.ID) })
	var parts []string
	for _, n := range nodes[:min(len(nodes), Most)] {
		parts = append(parts, fmt.Sprintf("%.60q has %.200s", n.ID, what(n)))
	}
	if more := len(nodes) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more do not have it either", more))
	}
	return strings.Join(parts, ", ")
}

func providersOf(n *cove.Node) string {
	var names []string
	for _, p := range n.Providers {
		names = append(names, fmt.Sprintf("%.40s (%.20s)", p.Name, p.Boundary))
	}
	return cmp.Or(strings.Join(names, " and "), "no provider")
}

func templatesOf(n *cove.Node) string {
	return cmp.Or(strings.Join(cove.VisibleTemplates("", n.Templates), " and "), baseTemplate)
}

func memoryOf(n *cove.Node) string { return n.Capacity.Memory.String() }
