package engine

import (
	"context"
	"slices"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

// admit takes room for a session: what is free, then what eviction frees, then
// what a wait brings.
func (e *Engine) admit(ctx context.Context, s *cove.Session, onFull cove.OnFull, told func(int)) (*admission.Ticket, error) {
	quota, err := e.tenants.check(ctx, s.Tenant)
	if err != nil {
		return nil, err
	}
	claim := admission.Claim{Tenant: s.Tenant, Memory: s.Spec.Resources.Memory, Quota: quota}
	ticket, full := e.gate.Try(claim)
	if full == nil {
		return ticket, nil
	}
	if e.cfg.Evict {
		if ticket, err := e.evict(ctx, claim); err == nil || cove.CodeOf(err) != cove.Exhausted {
			return ticket, err
		}
	}
	if onFull == cove.WaitWhenFull {
		return e.gate.Wait(ctx, claim, told)
	}
	return nil, full
}

// evict stops as many of the tenant's least recently used idle sessions as the
// claim needs, and takes their room. The stopped ones keep their files.
func (e *Engine) evict(ctx context.Context, claim admission.Claim) (*admission.Ticket, error) {
	count, memory := e.gate.Shortfall(claim)
	if count <= 0 && memory <= 0 {
		return e.gate.Try(claim)
	}
	victims := e.idle(claim.Tenant)
	if !enough(victims, count, memory) {
		return nil, cove.Errorf(cove.Exhausted, "stopping all idle sessions would not make room")
	}
	var freed []*admission.Ticket
	for _, l := range victims {
		if count <= 0 && memory <= 0 {
			break
		}
		ticket, ok, err := e.stopForRoom(ctx, l)
		if err != nil {
			leaveAll(freed)
			return nil, err
		}
		if !ok {
			continue
		}
		s := l.view()
		e.note(ctx, "session.evicted", s, "room for another session of the tenant")
		freed = append(freed, ticket)
		count--
		memory -= s.Spec.Resources.Memory
	}
	return e.gate.Exchange(freed, claim)
}

// enough reports whether stopping all of a list would free what is short.
func enough(list []*lease, count int, memory cove.Bytes) bool {
	for _, l := range list {
		count--
		memory -= l.view().Spec.Resources.Memory
	}
	return count <= 0 && memory <= 0
}

func leaveAll(tickets []*admission.Ticket) {
	for _, t := range tickets {
		t.Leave()
	}
}

// idle returns the tenant's running sessions in which nothing happens, least
// recently used first.
func (e *Engine) idle(tenant string) []*lease {
	type candidate struct {
		l *lease
		s *cove.Session
	}
	var found []candidate
	for _, l := range e.snapshotLeases() {
		if s := l.view(); s.Tenant == tenant && s.State == cove.Running && !s.Busy {
			found = append(found, candidate{l, s})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return a.s.LastActivity.Compare(b.s.LastActivity) })
	list := make([]*lease, len(found))
	for i, c := range found {
		list[i] = c.l
	}
	return list
}

// stopForRoom stops an idle session and returns its room. It returns false for
// one that somebody has begun to use or change.
func (e *Engine) stopForRoom(ctx context.Context, l *lease) (*admission.Ticket, bool, error) {
	if !l.tryTurn() {
		return nil, false, nil
	}
	defer l.giveTurn()
	l.mu.Lock()
	idle := l.busy == 0 && l.rec.State == cove.Running
	ticket := l.ticket
	if idle {
		l.ticket = nil // it stays taken until the exchange
	}
	l.mu.Unlock()
	if !idle {
		return nil, false, nil
	}
	if err := e.rest(ctx, l); err != nil {
		l.mu.Lock()
		l.ticket = ticket // it runs on
		l.mu.Unlock()
		return nil, false, err
	}
	return ticket, true, nil
}
