package engine

import (
	"context"
	"slices"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

// admit takes room for a session: what is free, then what eviction frees, then
// what a wait brings.
func (e *Engine) admit(ctx context.Context, l *lease, onFull cove.OnFull, told func(int)) (*admission.Ticket, error) {
	s := l.view()
	quota, err := e.tenants.check(ctx, s.Tenant)
	if err == nil && !s.Archived { // one that starts again gives its archive back
		err = e.roomToBegin(ctx, s.Tenant)
	}
	if err != nil {
		return nil, err
	}
	claim := admission.Claim{Tenant: s.Tenant, Memory: s.Spec.Resources.Memory, Quota: quota}
	ticket, full := e.gate.Try(claim)
	if full != nil && e.endSpare(ctx) {
		ticket, full = e.gate.Try(claim)
	}
	if full != nil && e.endDead(ctx) {
		ticket, full = e.gate.Try(claim)
	}
	if full == nil {
		return ticket, nil
	}
	if e.cfg.Evict {
		if freed := e.evict(ctx, claim); len(freed) > 0 {
			return e.gate.Exchange(freed, claim)
		}
	}
	if onFull != cove.WaitWhenFull {
		return nil, full
	}
	return e.wait(ctx, l, claim, told)
}

// wait queues for room. A caller that closes the session meanwhile ends it.
func (e *Engine) wait(ctx context.Context, l *lease, claim admission.Claim, told func(int)) (*admission.Ticket, error) {
	ctx, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	l.setQueued(abandon)
	defer l.setQueued(nil)
	ticket, err := e.gate.Wait(ctx, claim, told)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return ticket, err
}

// makeRoom evicts for callers that wait, now that something may be idle. Each
// tenant pays for its own.
func (e *Engine) makeRoom(ctx context.Context) (int64, error) {
	var n int64
	if !e.cfg.Evict {
		return 0, nil
	}
	for _, claim := range e.gate.Waiting() {
		if freed := e.evict(ctx, claim); len(freed) > 0 {
			e.gate.Serve(freed, claim.Tenant)
			n += int64(len(freed))
		}
	}
	return n, nil
}

// evict stops as many of the tenant's least recently used idle sessions as the
// claim needs and returns their room. The stopped ones keep their files. Where
// all of them would not be enough, none is stopped; one that cannot be stopped
// is passed over.
func (e *Engine) evict(ctx context.Context, claim admission.Claim) []*admission.Ticket {
	count, memory := e.gate.Shortfall(claim)
	victims := e.idle(claim.Tenant)
	if count <= 0 && memory <= 0 || !e.enough(victims, count, memory) {
		return nil
	}
	var freed []*admission.Ticket
	for _, l := range victims {
		if count <= 0 && memory <= 0 {
			break
		}
		ticket, err := e.stopForRoom(ctx, l)
		if err != nil {
			e.cfg.Logger.WarnContext(ctx, "evict; trying the next", errAttr(err), sessionAttr(l.id))
		}
		if ticket == nil {
			continue
		}
		s := l.view()
		e.note(ctx, "session.evicted", s, "room for another session of the tenant")
		freed = append(freed, ticket)
		count--
		memory -= s.Spec.Resources.Memory
	}
	return freed
}

// enough reports whether stopping all of a list would free what is short.
func (e *Engine) enough(list []*lease, count int, memory cove.Bytes) bool {
	for _, l := range list {
		count--
		memory -= l.view().Spec.Resources.Memory
	}
	return count <= 0 && memory <= 0
}

// idle returns the tenant's sessions that have a sandbox in which nothing
// happens, least recently used first.
func (e *Engine) idle(tenant string) []*lease {
	type candidate struct {
		l *lease
		s *cove.Session
	}
	var found []candidate
	for _, l := range e.snapshotLeases() {
		if s := l.view(); s.Tenant == tenant && (s.State == cove.Running || s.State == cove.Paused) && !s.Busy && decided(s) == nil {
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

// stopForRoom stops an idle session and returns its room; nil for one that
// somebody has begun to use or change, or that cannot be stopped.
func (e *Engine) stopForRoom(ctx context.Context, l *lease) (*admission.Ticket, error) {
	if !l.tryTurn() {
		return nil, nil //nolint:nilnil // somebody is at it: no room, and no error
	}
	defer l.giveTurn()
	if decided(l.view()) != nil || !l.beginRest(cove.ReasonEvicted) {
		return nil, nil //nolint:nilnil // it is no longer idle: no room, and no error
	}
	defer l.endRest()
	l.mu.Lock()
	ticket := l.ticket
	l.ticket = nil // it stays taken until the exchange
	l.mu.Unlock()
	if err := e.restUnasked(ctx, l, cove.ReasonEvicted); err != nil {
		l.mu.Lock()
		l.ticket = ticket // it runs on
		l.mu.Unlock()
		if cove.CodeOf(err) == cove.NotFound {
			e.broke(ctx, l)
		}
		return nil, err
	}
	return ticket, nil
}
