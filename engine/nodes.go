package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// nodes is the part of the platform that shows the servers of a cluster.
type nodes struct{ v view }

// List implements [cove.Nodes].
func (p nodes) List(ctx context.Context) ([]cove.Node, error) {
	a := action{Action: cove.Action{Verb: cove.NodeList}}
	return act(ctx, p.v, a, func(ctx context.Context, _ *step) ([]cove.Node, error) {
		e := p.v.e
		if e.cfg.Cluster != nil {
			return e.cfg.Cluster.List(ctx)
		}
		self := e.Self(ctx)
		self.SeenAt = time.Now()
		return []cove.Node{self}, ctx.Err()
	})
}

// Drain implements [cove.Nodes].
func (p nodes) Drain(ctx context.Context, node string) (*cove.Node, error) {
	return p.change(ctx, cove.NodeDrain, node, cove.Nodes.Drain)
}

// Uncordon implements [cove.Nodes].
func (p nodes) Uncordon(ctx context.Context, node string) (*cove.Node, error) {
	return p.change(ctx, cove.NodeUncordon, node, cove.Nodes.Uncordon)
}

// change has a node of the cluster take sessions or not. The journal learns which
// one when there is one of that name.
func (p nodes) change(ctx context.Context, verb cove.Verb, node string, do func(cove.Nodes, context.Context, string) (*cove.Node, error)) (*cove.Node, error) {
	e := p.v.e
	a := action{Action: cove.Action{Verb: verb}, data: e.contentOf(node)}
	return act(ctx, p.v, a, func(ctx context.Context, st *step) (*cove.Node, error) {
		if e.cfg.Cluster == nil {
			return nil, cove.Errorf(cove.Unsupported, "this server is alone: there is no other node that could take its sessions").
				Remedy("set REDIS_URL on every node")
		}
		n, err := do(e.cfg.Cluster, ctx, node)
		if err == nil {
			st.outcome.Data, _ = json.Marshal(map[string]string{"node": n.ID}) // a map of strings cannot fail
		}
		return n, err
	})
}

// Self is this server as a node, without its address and region, which the engine
// does not know, and without SeenAt. It takes what providers said last, and does not
// wait for one that is slow to say anything new.
func (e *Engine) Self(ctx context.Context) cove.Node {
	n := cove.Node{
		ID: e.cfg.Node, Version: e.cfg.Version, State: cove.NodeReady, StartedAt: e.began,
		Providers: []cove.NodeProvider{}, Templates: []string{},
		Capacity: cove.Bounds{Sessions: e.cfg.MaxSessions, Memory: e.cfg.MaxMemory},
	}
	n.Used.Sessions, n.Used.Memory, _ = e.gate.Used()
	_, n.Pool = e.pool.Size()
	e.mu.RLock()
	n.Sessions = len(e.leases)
	e.mu.RUnlock()
	for _, last := range e.probes.latest(ctx) {
		n.Providers = append(n.Providers, cove.NodeProvider{Name: last.name, Boundary: last.caps.Isolation.Boundary, Default: last.name == e.cfg.Provider})
		n.Templates = append(n.Templates, last.caps.Templates...)
	}
	slices.Sort(n.Templates)
	n.Templates = slices.Compact(n.Templates)
	return n
}
