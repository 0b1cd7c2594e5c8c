package platformtest

import (
	"context"
	"slices"
	"testing"

	"github.com/cove-sandbox/cove"
)

func nodeCases() []testCase {
	return []testCase{
		{"list", nodeListed},
		{"alone", nodeAlone},
	}
}

func nodeCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.NodeList: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Nodes().List(ctx))
		}},
		cove.NodeDrain: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Nodes().Drain(ctx, "nobody"))
		}},
		cove.NodeUncordon: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Nodes().Uncordon(ctx, "nobody"))
		}},
	}
}

// self returns the node that a session says it is on.
func (r *rig) self(name string) cove.Node {
	r.t.Helper()
	list, err := r.admin().Nodes().List(r.ctx)
	r.must(err, "list nodes")
	i := slices.IndexFunc(list, func(n cove.Node) bool { return n.ID == name })
	if i < 0 {
		r.t.Fatalf("node %q is not among %+v", name, list)
	}
	return list[i]
}

func nodeListed(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 7, MaxMemory: 16 * cove.GiB})
	p := r.user("acme")
	one, stopped := r.session(p, cove.Spec{}), r.session(p, cove.Spec{})
	_, err := p.Sessions().Stop(r.ctx, stopped.ID)
	r.must(err, "stop a session")
	n := r.self(one.Node)
	if n.State != cove.NodeReady || n.StartedAt.IsZero() || n.SeenAt.Before(n.StartedAt) {
		t.Errorf("a node that serves is %+v", n)
	}
	same(t, "the capacity", n.Capacity, cove.Bounds{Sessions: 7, Memory: 16 * cove.GiB})
	if n.Sessions != 2 || n.Used.Sessions != 1 || n.Used.Memory < one.Spec.Resources.Memory {
		t.Errorf("with a session that runs and one that is stopped the node has %+v", n)
	}
	serves := func(o cove.NodeProvider) bool {
		return o.Name == one.Provider && o.Default && o.Boundary == one.Isolation.Boundary
	}
	if !slices.ContainsFunc(n.Providers, serves) || !slices.Contains(n.Templates, one.Spec.Template) {
		t.Errorf("the node does not say that it has what serves a session: %+v", n)
	}
}

func nodeAlone(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	name := r.session(r.user("acme"), cove.Spec{}).Node
	if list, err := r.admin().Nodes().List(r.ctx); err != nil || len(list) > 1 {
		t.Skip("this platform has several nodes")
	}
	_, err := r.admin().Nodes().Drain(r.ctx, name)
	wantCode(t, err, cove.Unsupported)
	if cove.RemedyOf(err) == "" {
		t.Errorf("nobody is told what to do: %v", err)
	}
	_, err = r.admin().Nodes().Uncordon(r.ctx, name)
	wantCode(t, err, cove.Unsupported)
	_, err = r.user("acme").Nodes().List(r.ctx)
	wantCode(t, err, cove.Denied)
	same(t, "the state after all", r.self(name).State, cove.NodeReady)
}
