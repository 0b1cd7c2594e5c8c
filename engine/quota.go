package engine

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// quotaPause is how often who waits for others of the tenant, on whatever node, looks
// whether they made room.
const quotaPause = 500 * time.Millisecond

// fullElsewhere reports whether err says that a tenant or a key has as much as it may
// in the whole cluster. This node's own gate had room.
func (e *Engine) fullElsewhere(err error) bool {
	if !e.shared() || cove.CodeOf(err) != cove.Exhausted {
		return false
	}
	reason := cove.ReasonOf(err)
	return reason == cove.ReasonTenantQuota || reason == cove.ReasonKeyQuota
}

// roomElsewhere asks whether a session that is to be started again would be one too many
// in the whole cluster, before a sandbox is made for it: what counts it is written after
// that. One that is opened is counted first.
func (e *Engine) roomElsewhere(ctx context.Context, s *cove.Session) error {
	if !e.shared() || s.State != cove.Stopped {
		return nil
	}
	return e.cfg.Directory.Room(ctx, s)
}

// othersWait is one caller that may have to wait for others of the tenant. Once it
// does it is one of the queue, until it leaves.
type othersWait struct {
	e  *Engine
	in bool
}

// enter takes a place in the queue, unless as many wait as may.
func (w *othersWait) enter() error {
	if w.in {
		return nil
	}
	_, _, here := w.e.gate.Used()
	if n := w.e.waitOthers.Add(1); int(n)+here > w.e.cfg.QueueLength {
		w.e.waitOthers.Add(-1)
		return cove.Errorf(cove.Exhausted, "%d callers wait already; try again later", w.e.cfg.QueueLength).
			Reason(cove.ReasonQueueFull).With("retry_after", 5)
	}
	w.in = true
	return nil
}

func (w *othersWait) leave() {
	if w.in {
		w.e.waitOthers.Add(-1)
	}
}

// await makes room within what a tenant may have in all nodes: by stopping its
// idle session that was used least recently, of those that are here, or by waiting
// where the caller is willing to. Otherwise it returns full.
func (w *othersWait) await(ctx context.Context, l *lease, onFull cove.OnFull, told func(int), full error) error {
	if w.e.cfg.Evict && w.e.evictOne(ctx, l.tenant) {
		return nil
	}
	if onFull != cove.WaitWhenFull {
		return full
	}
	if err := w.enter(); err != nil {
		return err
	}
	ctx, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	l.setQueued(abandon)
	defer l.setQueued(nil)
	if told != nil {
		told(1) // nobody knows who waits at other nodes
	}
	select {
	case <-time.After(quotaPause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// evictOne stops the tenant's idle session that was used least recently, and reports
// whether there was one.
func (e *Engine) evictOne(ctx context.Context, tenant string) bool {
	for _, victim := range e.idle(tenant) {
		ticket, err := e.stopForRoom(ctx, victim)
		if err != nil {
			e.cfg.Logger.WarnContext(ctx, "evict; trying the next", errAttr(err), sessionAttr(victim.id))
		}
		if ticket == nil {
			continue
		}
		ticket.Leave()
		e.note(ctx, "session.evicted", victim.view(), "room for another session of the tenant")
		return true
	}
	return false
}
