package engine

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// removeOrphans ends sandboxes, archives and outputs that no session owns, and what
// is left of volumes.
func (e *Engine) removeOrphans(ctx context.Context) (int64, error) {
	var n int64
	var failed error
	for _, p := range e.cfg.Providers {
		if e.unused(ctx, p) {
			continue
		}
		gone, err := e.removeOrphansOf(ctx, p)
		n += gone
		failed = errors.Join(failed, err)
	}
	gone, err := e.removeArchives(ctx)
	half, verr := e.removeHalfVolumes(ctx)
	return n + gone + half, errors.Join(failed, err, verr, e.removeOutputs())
}

// unused reports whether nobody chose a provider, no session has it, and it is not
// ready: most machines lack what some provider needs, and that is no news.
func (e *Engine) unused(ctx context.Context, p cove.Provider) bool {
	name := p.Name()
	if name == e.cfg.Provider || slices.Contains(e.cfg.Fallback, name) {
		return false
	}
	e.mu.RLock()
	leases := slices.Collect(maps.Values(e.leases))
	e.mu.RUnlock()
	if slices.ContainsFunc(leases, func(l *lease) bool { return l.provider() == name }) {
		return false
	}
	caps, err := e.probes.of(ctx, p)
	return err == nil && !caps.Ready
}

// removeOrphansOf ends the sandboxes of one provider that no session owns. Ids
// are collected first and looked up after, so that a sandbox made in between is
// never taken for an orphan: its session is in the table before it is made.
func (e *Engine) removeOrphansOf(ctx context.Context, p cove.Provider) (int64, error) {
	var n int64
	var failed error
	var ids []cove.ID
	for id, err := range p.List(ctx) {
		if err != nil {
			return 0, err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		if e.rooms.has(id) || e.places.has(id) || e.keeps(id) || e.owned(id, func(s *cove.Session) bool { return s.State != cove.Stopped }) {
			continue
		}
		if err := p.Remove(ctx, id); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		e.note(ctx, "sandbox.orphan_removed", &cove.Session{ID: id, Provider: p.Name()}, "no session owns it")
		n++
	}
	return n, failed
}

// keeps reports whether an id may be that of a session whose record the directory lost.
// One that is in the table is there to be asked.
func (e *Engine) keeps(id cove.ID) bool { return e.cfg.Keeps != nil && !e.Holds(id) && e.cfg.Keeps(id) }

// owned reports whether a session in the table answers for an id.
func (e *Engine) owned(id cove.ID, as func(*cove.Session) bool) bool {
	e.mu.RLock()
	l := e.leases[id]
	e.mu.RUnlock()
	if l == nil {
		return false
	}
	if len(l.turn) == 0 {
		return true // somebody is changing it: not now
	}
	return as(l.view())
}

func (e *Engine) removeArchives(ctx context.Context) (int64, error) {
	var n int64
	var ids []cove.ID
	for id, err := range e.cfg.Archives.List(ctx) {
		if err != nil {
			return 0, err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if e.keeps(id) || e.owned(id, func(s *cove.Session) bool { return s.Archived }) {
			continue
		}
		if err := e.cfg.Archives.Delete(ctx, id); err != nil {
			return n, err
		}
		n++
	}
	moved, err := e.removeMoving(ctx)
	return n + moved, err
}

// removeMoving removes what sessions that have ended left where every node looks. One
// that nobody knows is left alone: another node's may be between its archive and its
// record, and a directory that lost its records must not lose files, too.
func (e *Engine) removeMoving(ctx context.Context) (int64, error) {
	var n int64
	if e.cfg.Moving == nil {
		return 0, nil
	}
	for id, err := range e.cfg.Moving.List(ctx) {
		if err != nil {
			return n, err
		}
		s, err := e.cfg.Store.GetSession(ctx, id)
		if cove.CodeOf(err) == cove.NotFound || err == nil && s.State != cove.Ended {
			continue
		}
		if err != nil {
			return n, err
		}
		if err := e.cfg.Moving.Delete(ctx, id); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// removeOutputs deletes kept output whose session is gone.
func (e *Engine) removeOutputs() error {
	entries, err := fs.ReadDir(e.cfg.Output.FS(), ".")
	if err != nil {
		return err
	}
	var failed error
	for _, entry := range entries {
		session, _, _ := strings.Cut(entry.Name(), "-")
		if !e.keeps(cove.ID(session)) && !e.owned(cove.ID(session), func(*cove.Session) bool { return true }) {
			failed = errors.Join(failed, e.removeOutput(entry.Name()))
		}
	}
	return failed
}
