package cluster

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/cove-sandbox/cove"
)

// admin is what an operator does at this node, but for the numbers, which are those of
// all nodes that answer, for the journal of a session, which its node has, and for a key
// that another node made for the same request.
type admin struct {
	cove.Admin

	v view
}

// CreateKey implements [cove.Admin]. What an idempotency key stands for, the node knows
// that it was shown to first.
func (a admin) CreateKey(ctx context.Context, req cove.KeyRequest) (*cove.Key, string, error) {
	type made struct {
		key    *cove.Key
		secret string
	}
	got, err := chase(ctx, a.v.changing(req.IdempotencyKey), a.v.m.cfg.Node, func(at cove.Platform) (made, error) {
		k, secret, err := at.Admin().CreateKey(ctx, req)
		return made{k, secret}, err
	})
	return got.key, got.secret, err
}

// Stats implements [cove.Admin].
func (a admin) Stats(ctx context.Context) (*cove.Stats, error) {
	sum, err := a.Admin.Stats(ctx)
	if err != nil || a.v.here {
		return sum, err
	}
	for _, s := range fromOthers(ctx, a.v, func(ctx context.Context, p cove.Platform) (*cove.Stats, error) { return p.Admin().Stats(ctx) }) {
		addStats(sum, s)
	}
	return sum, nil
}

// Tenant implements [cove.Admin]. What a tenant used is in the directory, but for the
// last minute of each node.
func (a admin) Tenant(ctx context.Context, name string) (*cove.TenantReport, error) {
	sum, err := a.Admin.Tenant(ctx, name)
	if err != nil || a.v.here {
		return sum, err
	}
	ask := func(ctx context.Context, p cove.Platform) (*cove.TenantReport, error) {
		return p.Admin().Tenant(ctx, name)
	}
	for _, t := range fromOthers(ctx, a.v, ask) {
		sum.Sessions += t.Sessions
		sum.Memory += t.Memory
		sum.Disk = sum.Disk.Plus(t.Disk)
	}
	return sum, nil
}

// Events implements [cove.Admin].
func (a admin) Events(ctx context.Context, f cove.EventFilter) iter.Seq2[cove.Event, error] {
	if a.v.here || !f.Session.Valid() {
		return a.Admin.Events(ctx, f)
	}
	return func(yield func(cove.Event, error) bool) {
		at := a.Admin
		if p, ok := a.v.journalOf(ctx, f.Session); ok {
			at = p.Admin()
		}
		for ev, err := range at.Events(ctx, f) {
			if !yield(ev, err) {
				return
			}
		}
	}
}

// journalOf is the node that wrote about a session, also when that has ended.
func (v view) journalOf(ctx context.Context, id cove.ID) (cove.Platform, bool) {
	s, err := v.m.cfg.Directory.GetSession(ctx, id)
	if err != nil || s.Node == "" || s.Node == v.m.cfg.Node {
		return nil, false
	}
	p, err := v.at(ctx, s.Node)
	return p, err == nil
}

// fromOthers asks all other nodes at once, and has what those answer that do in time.
func fromOthers[T any](ctx context.Context, v view, ask func(context.Context, cove.Platform) (T, error)) []T {
	ctx, cancel := context.WithTimeout(ctx, v.m.cfg.Lease/askPerLease)
	defer cancel()
	others := slices.DeleteFunc(slices.Clone(v.m.members()), func(n cove.Node) bool { return n.ID == v.m.cfg.Node || n.State == cove.NodeGone })
	found := make([]*T, len(others))
	var wg sync.WaitGroup
	for i, n := range others {
		wg.Go(func() {
			p, err := v.m.peers.as(n, v.p)
			if err != nil {
				return
			}
			if got, err := ask(ctx, p); err == nil {
				found[i] = &got
			}
		})
	}
	wg.Wait()
	var all []T
	for _, f := range found {
		if f != nil {
			all = append(all, *f)
		}
	}
	return all
}

// addStats adds the numbers of one node to those of others. A node without a bound
// has the cluster be without one.
func addStats(sum, s *cove.Stats) {
	sum.ActiveSessions += s.ActiveSessions
	sum.MaxSessions = both(sum.MaxSessions, s.MaxSessions)
	sum.MaxMemory = both(sum.MaxMemory, s.MaxMemory)
	sum.Memory += s.Memory
	sum.CPUs += s.CPUs
	sum.PoolSize += s.PoolSize
	sum.PoolAvailable += s.PoolAvailable
	sum.Queued += s.Queued
	sum.Opened += s.Opened
	sum.Reused += s.Reused
	sum.Executions += s.Executions
	sum.Runs += s.Runs
	addCounts(&sum.SessionsByFlavor, s.SessionsByFlavor)
	addCounts(&sum.SessionsByState, s.SessionsByState)
	if sum.ByProvider == nil {
		sum.ByProvider = map[string]*cove.ProviderShare{}
	}
	for name, by := range s.ByProvider {
		addShare(sum.ByProvider, name, by)
	}
}

func both[T int | cove.Bytes](a, b T) T {
	if a == 0 || b == 0 {
		return 0
	}
	return a + b
}

func addCounts[K comparable](sum *map[K]int, by map[K]int) {
	if *sum == nil {
		*sum = map[K]int{}
	}
	for k, n := range by {
		(*sum)[k] += n
	}
}

func addShare(sum map[string]*cove.ProviderShare, name string, by *cove.ProviderShare) {
	if sum[name] == nil {
		copied := *by
		copied.ByState = maps.Clone(by.ByState)
		sum[name] = &copied
		return
	}
	s := sum[name]
	s.Active += by.Active
	s.Memory += by.Memory
	s.CPUs += by.CPUs
	s.UsedMemory += by.UsedMemory
	s.UsedCPUs += by.UsedCPUs
	s.Measured += by.Measured
	if s.MeasuredAt.IsZero() || !by.MeasuredAt.IsZero() && by.MeasuredAt.Before(s.MeasuredAt) {
		s.MeasuredAt = by.MeasuredAt
	}
	addCounts(&s.ByState, by.ByState)
}
