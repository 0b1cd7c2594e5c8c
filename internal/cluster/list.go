package cluster

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

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
	lists := make([][]*cove.Session, len(others))
	errs := make([]error, len(others))
	var wg sync.WaitGroup
	for i, n := range others {
		wg.Go(func() { lists[i], errs[i] = v.listOf(ctx, n, f) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, err
		}
		own = append(own, lists[i]...)
	}
	moving, err := v.moving(ctx, f, others) // after the nodes, whose lists lack what moved meanwhile
	if err != nil {
		return nil, err
	}
	own = append(own, moving...)
	slices.SortStableFunc(own, func(a, b *cove.Session) int { return strings.Compare(string(a.ID), string(b.ID)) })
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

// moving returns the recorded sessions that the lists of the nodes that were asked may
// lack: those without a node, and those that can move, which a node may have released
// before it was asked and another taken up after that.
func (v view) moving(ctx context.Context, f cove.SessionFilter, asked []cove.Node) ([]*cove.Session, error) {
	all, err := v.recorded(ctx, f)
	now := time.Now()
	return slices.DeleteFunc(all, func(s *cove.Session) bool {
		isAsked := s.Node == v.m.cfg.Node || slices.ContainsFunc(asked, func(n cove.Node) bool { return n.ID == s.Node })
		return s.Node != "" && (!s.Spec.Workspace.Moves || !isAsked || now.After(s.ExpiresAt))
	}), err
}

// recorded is what the directory knows of the caller's sessions.
func (v view) recorded(ctx context.Context, f cove.SessionFilter) ([]*cove.Session, error) {
	f.Tenant = v.p.Tenant
	all, err := gather(v.m.cfg.Directory.Sessions(ctx, f))
	for _, s := range all { // the directory's copies, made for this call
		s.Spec = s.Spec.Redacted()
		_, s.Spec.Template = cove.SplitTemplate(s.Spec.Template) // as callers know it
	}
	return all, err
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
