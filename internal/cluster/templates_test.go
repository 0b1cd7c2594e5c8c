package cluster_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cluster"
)

// TestTemplateOfATenant: a session goes to a node with the template of the caller's own
// tenant if there is one, and never for that of another.
func TestTemplateOfATenant(t *testing.T) {
	nodes := []cove.Node{{ID: "a", Templates: []string{"acme/zoo", "kit"}}, {ID: "b", Templates: []string{"kit", "zoo"}}}
	for name, c := range map[string]struct {
		tenant, asked, ofKey, want string
	}{
		"its own":            {"acme", "zoo", "", "acme/zoo"},
		"its own by the key": {"acme", "", "zoo", "acme/zoo"},
		"shared":             {"acme", "kit", "", "kit"},
		"of another":         {"bravo", "zoo", "", "zoo"},
		"none":               {"acme", "", "", ""},
	} {
		p := cove.Principal{Tenant: c.tenant, Defaults: cove.Spec{Template: c.ofKey}}
		if got := cluster.Wants(nodes, p, cove.Spec{Template: c.asked}).Template; got != c.want {
			t.Errorf("%s: it wants %q, want %q", name, got, c.want)
		}
	}
}
