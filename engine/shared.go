package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// shared reports whether other nodes have the same store.
func (e *Engine) shared() bool { return e.cfg.Directory != nil }

// ownNode is what the records are marked with that only this node can do something
// about; "" where there is no other.
func (e *Engine) ownNode() string {
	if !e.shared() {
		return ""
	}
	return e.cfg.Node
}

// elsewhere is the answer to who asks this node for what another one has; "" is
// nobody.
func elsewhere(node string) error {
	return cove.Errorf(cove.NotFound, "another node has it").Reason(cove.ReasonElsewhere).With("node", node)
}

// onlyHere refuses what another node has the files of. A record without a node is
// from a time when there was one.
func (e *Engine) onlyHere(node string) error {
	if !e.shared() || node == "" || node == e.cfg.Node {
		return nil
	}
	return elsewhere(node)
}

// leftBehind reports whether a record is of a node that is gone, or was forgotten: its
// files are out of reach, and the record can go by itself.
func (e *Engine) leftBehind(ctx context.Context, node string) bool {
	if e.onlyHere(node) == nil || e.cfg.Cluster == nil {
		return false
	}
	list, err := e.cfg.Cluster.List(ctx)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(list, func(n cove.Node) bool { return n.ID == node && n.State != cove.NodeGone })
}

// Holds reports whether a session is in this node's table.
func (e *Engine) Holds(id cove.ID) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.leases[id] != nil
}

// adoptStopped takes up a session that is nobody's: it is stopped, and its files are
// where every node finds them. One that is this node's already and not in its table is
// taken up as well: the answer to an earlier Adopt was lost on its way.
func (e *Engine) adoptStopped(ctx context.Context, id cove.ID) (*lease, error) {
	// One at a time: whoever comes between the record and the table would find the
	// session to be here and nowhere.
	select {
	case e.adopting <- struct{}{}:
		defer func() { <-e.adopting }()
	case <-ctx.Done():
		return nil, cove.Wrap(cove.Unavailable, ctx.Err(), "other sessions are being taken up first").Reason(cove.ReasonNoDirectory).
			With("retry_after", 2).Remedy("try again in a moment")
	}
	e.mu.RLock()
	l := e.leases[id]
	e.mu.RUnlock()
	if l != nil {
		return l, nil // somebody was faster
	}
	// After the table, since what leaves that has changed its record before.
	s, err := e.cfg.Store.GetSession(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case s.State == cove.Ended:
		return nil, gone(s)
	case s.Node == e.cfg.Node && e.movesNow(s):
	case s.Node == e.cfg.Node:
		return nil, noSession(id)
	case e.cordoned.Load():
		return nil, elsewhere("")
	default:
		if s, err = e.cfg.Directory.Adopt(ctx, id); err != nil {
			return nil, err
		}
	}
	return e.enroll(ctx, s)
}

// enroll puts a stopped session of this node's into the table.
func (e *Engine) enroll(ctx context.Context, s *cove.Session) (*lease, error) {
	if _, err := e.tenants.load(ctx, s.Tenant); err != nil { // what it consumes is booked there
		return nil, err
	}
	l := newLease(*s, e.onIdle)
	e.mu.Lock()
	was := e.leases[s.ID]
	if was == nil {
		e.insert(l, s)
	}
	e.mu.Unlock()
	if was != nil {
		return was, nil
	}
	e.alarmFor(l)
	e.note(ctx, "session.adopted", s, "it was stopped, and no node had it")
	return l, nil
}

// heldElsewhere reports whether err says that a session of another node's, or of
// nobody's, has what was asked for, and which.
func heldElsewhere(err error) (cove.ID, bool) {
	e, ok := errors.AsType[*cove.Error](err)
	if !ok || cove.ReasonOf(err) != cove.ReasonElsewhere {
		return "", false
	}
	id, _ := e.Details["session_id"].(string)
	return cove.ID(id), id != ""
}

// heldByNobody is heldElsewhere for a session that is nobody's.
func heldByNobody(err error) (cove.ID, bool) {
	id, held := heldElsewhere(err)
	if !held {
		return "", false
	}
	e, _ := errors.AsType[*cove.Error](err)
	return id, e.Details["node"] == ""
}

// sharedTime bounds a look into the directory that must not depend on a caller.
const sharedTime = 5 * time.Second

// putOwn writes the record of a session of this node's. Nobody else writes it, so a
// version that is not the expected one says that an earlier answer was lost on its
// way, or that others gave the session up.
func (e *Engine) putOwn(ctx context.Context, rec *cove.Session) error {
	err := e.cfg.Store.PutSession(ctx, rec)
	if !e.shared() || cove.CodeOf(err) != cove.Conflict || cove.ReasonOf(err) == cove.ReasonElsewhere || rec.Version == 0 {
		return err
	}
	kept, gerr := e.cfg.Store.GetSession(ctx, rec.ID)
	switch {
	case cove.CodeOf(gerr) == cove.NotFound:
		// The directory lost the record, and gets it back from this node within a lease.
		return cove.Errorf(cove.Unavailable, "the directory was begun anew, and this node has not told it of the session yet").
			Reason(cove.ReasonNoDirectory).With("retry_after", 2).Remedy("try again in a moment")
	case gerr != nil:
		return err
	case kept.State == cove.Ended && rec.State == cove.Ended:
		rec.Version = kept.Version
		return nil
	case kept.State == cove.Ended:
		return gone(kept)
	case kept.Node != e.cfg.Node:
		return elsewhere(kept.Node)
	}
	rec.Version = kept.Version
	return e.cfg.Store.PutSession(ctx, rec)
}

// KeyRevoked ends what goes on for a key that another node revoked.
func (e *Engine) KeyRevoked(ctx context.Context, id cove.ID) {
	e.runs.endOf(string(id))
	e.endOwned(ctx, string(id))
}

// TenantChanged has the bounds of a tenant looked up anew, or of all when name is "".
func (e *Engine) TenantChanged(ctx context.Context, name string) {
	if err := e.tenants.reload(ctx, name); err != nil {
		e.cfg.Logger.WarnContext(ctx, "look up the bounds of a tenant; the records task tries again", errAttr(err))
	}
}
