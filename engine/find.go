package engine

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// find returns the tenant's session. What is somebody else's, ended or unknown
// is NotFound, the first and the last without a word more.
func (e *Engine) find(tenant string, id cove.ID) (*lease, error) {
	e.mu.RLock()
	l, closed := e.leases[id], e.closed
	e.mu.RUnlock()
	if closed {
		return nil, shuttingDown()
	}
	if l != nil {
		if l.tenant != tenant {
			return nil, noSession(id)
		}
		if cause, over := l.over(time.Now()); over {
			return nil, gone(&cove.Session{Cause: cause})
		}
		return l, e.certain(l)
	}
	return e.lookUp(tenant, id)
}

// lookUp says why a session that is not in the table is gone, or who has it. One that
// is nobody's is this node's from now on.
func (e *Engine) lookUp(tenant string, id cove.ID) (*lease, error) {
	if !id.Valid() {
		return nil, noSession(id)
	}
	// The look-up is a bounded read of one row and must not depend on whether
	// the caller has gone: its answer is the caller's error.
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	s, err := e.locate(ctx, id)
	switch {
	case cove.CodeOf(err) == cove.NotFound:
		return nil, noSession(id)
	case err != nil:
		return nil, err
	case s.Tenant != tenant:
		return nil, noSession(id)
	case s.State == cove.Ended:
		return nil, gone(s)
	case !e.shared():
		return nil, noSession(id)
	case s.Node == "" || s.Node == e.cfg.Node:
		return e.adoptStopped(ctx, id)
	}
	return nil, elsewhere(s.Node)
}

// locate reads the record of a session. In a cluster one whose node is gone has ended,
// and one that a new directory may still be told of is not known to be missing.
func (e *Engine) locate(ctx context.Context, id cove.ID) (*cove.Session, error) {
	if e.shared() {
		return e.cfg.Directory.Locate(ctx, id)
	}
	return e.cfg.Store.GetSession(ctx, id)
}

func noSession(id cove.ID) error {
	return cove.Errorf(cove.NotFound, "there is no session %.40q", string(id)).Reason(cove.ReasonNoSession)
}

// insert puts a lease into the table. The caller holds mu.
func (e *Engine) insert(l *lease, s *cove.Session) {
	e.leases[s.ID] = l
	if s.Archived {
		e.countDisk(s.Tenant, diskItem{diskArchive, string(s.ID)}, max(s.ArchiveSize, leastItem))
	}
	e.owners[s.Owner]++
	if k, ok := keyOf(s); ok && s.State.Live() {
		e.keys[k] = l
	}
}

// unname takes the user and thread from a session.
func (e *Engine) unname(l *lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if k, ok := keyOf(l.view()); ok && e.keys[k] == l {
		delete(e.keys, k)
	}
	l.change(func(s *cove.Session) { s.Spec.User, s.Spec.Thread = "", "" })
}

// forget takes a lease out of the table.
func (e *Engine) forget(l *lease) {
	s := l.view()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leases[s.ID] != l {
		return
	}
	delete(e.leases, s.ID)
	e.freeDisk(diskItem{diskArchive, string(s.ID)})
	if e.owners[s.Owner]--; e.owners[s.Owner] <= 0 {
		delete(e.owners, s.Owner)
	}
	if k, ok := keyOf(s); ok && e.keys[k] == l {
		delete(e.keys, k)
	}
}
