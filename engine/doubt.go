package engine

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// saveLast puts the last record into the store that this node writes of a lease: that
// it ended, or is nobody's. Nobody here sees the change before it is there. In a
// cluster others see it at once, and may be told of it before the answer comes; so
// until that is here nothing is done in the lease, and where it does not come, until
// the directory was asked.
func (e *Engine) saveLast(ctx context.Context, l *lease, set func(*cove.Session)) error {
	if e.cfg.Fleeting {
		l.change(set)
		return nil // a record is for the time after this process
	}
	l.saved.Lock()
	defer l.saved.Unlock()
	l.mu.Lock()
	l.doubt = e.shared()
	rec := l.rec
	rec.Spec = rec.Spec.Clone()
	l.mu.Unlock()
	set(&rec)
	if err := e.putOwn(ctx, &rec); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	set(&l.rec)
	l.rec.Version, l.doubt = rec.Version, false
	return nil
}

// certain reports why a lease cannot be used: it has ended, or nobody knows whether.
// Then it asks the directory, once whoever is writing there is done, and takes a
// lease out of the table that is not this node's any more.
func (e *Engine) certain(l *lease) error {
	l.mu.Lock()
	doubt, rec := l.doubt, l.rec
	l.mu.Unlock()
	if !doubt {
		return notEnded(&rec)
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	err := e.settleDoubt(ctx, l)
	switch cove.CodeOf(err) { //nolint:exhaustive // the others say that nobody knows
	case cove.NotFound, cove.Conflict:
		kept, gerr := e.cfg.Store.GetSession(ctx, l.id)
		if gerr != nil {
			return gerr
		}
		e.letLoose(ctx, l, "session.let_go", "the directory was told, though its answer did not come")
		if kept.State == cove.Ended {
			return gone(kept)
		}
		return elsewhere(kept.Node)
	}
	if err != nil {
		return err
	}
	return notEnded(l.view())
}

// settleDoubt asks the directory about a lease, unless the answer came meanwhile.
func (e *Engine) settleDoubt(ctx context.Context, l *lease) error {
	l.saved.Lock()
	defer l.saved.Unlock()
	l.mu.Lock()
	doubt := l.doubt
	l.mu.Unlock()
	if !doubt {
		return nil
	}
	return e.restoreSaved(ctx, l)
}

func notEnded(s *cove.Session) error {
	if s.State == cove.Ended {
		return gone(s)
	}
	return nil
}
