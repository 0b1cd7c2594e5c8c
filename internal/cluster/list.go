package cluster

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// askPerLease bounds how long other nodes are waited for that are asked with all others:
// one that hangs must not keep the answer of the rest.
const askPerLease = 3

// List implements [cove.Sessions]: what every node has, in one order. Of a node that
// cannot be asked it has what the directory knows.
func (s sessions) List(ctx context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	if s.v.here {
		return s.v.own().Sessions().List(ctx, f)
	}
	return func(yield func(*cove.Session, error) bool) {
		found, err := s.v.collect(ctx, f)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, rec := range found {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// collect asks all nodes at once.
func (v view) collect(ctx context.Context, f cove.SessionFilter) ([]*cove.Session, error) {
	own, err := gather(v.own().Sessions().List(ctx, f))
	if err != nil {
		return nil, err // such as that the caller may not
	}
	others := slices.DeleteFunc(slices.Clone(v.m.membersNow(ctx)), func(n cove.Node) bool { return n.ID == v.m.cfg.Node || n.State == cove.NodeGone })
	lists := make([][]*cove.Session, len(others)+1)
	errs := make([]error, len(others)+1)
	var wg sync.WaitGroup
	for i, n := range others {
		wg.Go(func() { lists[i], errs[i] = v.listOf(ctx, n, f) })
	}
	wg.Go(func() { lists[len(others)], errs[len(others)] = v.nobodys(ctx, f) })
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, err
		}
		own = append(own, lists[i]...)
	}
	slices.SortFunc(own, func(a, b *cove.Session) int { return strings.Compare(string(a.ID), string(b.ID)) })
	own = slices.CompactFunc(own, func(a, b *cove.Session) bool { return a.ID == b.ID }) // one that moved meanwhile
	if f.Limit > 0 && len(own) > f.Limit {
		own = own[:f.Limit]
	}
	return own, nil
}

// listOf asks another node.
func (v view) listOf(ctx context.Context, n cove.Node, f cove.SessionFilter) ([]*cove.Session, error) {
	at, err := v.m.peers.as(n, v.p)
	if err != nil {
		return nil, err
	}
	call, cancel := context.WithTimeout(ctx, v.m.cfg.Lease/askPerLease)
	defer cancel()
	list, err := gather(at.Sessions().List(call, f))
	if err == nil || ctx.Err() != nil {
		return list, err
	}
	f.Node = n.ID
	return v.recorded(ctx, f)
}

// nobodys are the sessions that no node has.
func (v view) nobodys(ctx context.Context, f cove.SessionFilter) ([]*cove.Session, error) {
	if f.State != "" && f.State != cove.Stopped {
		return nil, nil
	}
	f.State = cove.Stopped
	all, err := v.recorded(ctx, f)
	return slices.DeleteFunc(all, func(s *cove.Session) bool { return s.Node != "" }), err
}

// recorded is what the directory knows of the caller's sessions.
func (v view) recorded(ctx context.Context, f cove.SessionFilter) ([]*cove.Session, error) {
	f.Tenant = v.p.Tenant
	return gather(v.m.cfg.Directory.Sessions(ctx, f))
}

func gather[T any](list iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
