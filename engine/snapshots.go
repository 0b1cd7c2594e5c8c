package engine

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/cove-sandbox/cove"
)

// snapshots is the part of the platform that saves, doubles and holds.
type snapshots struct{ v view }

// Pause implements [cove.Snapshots]. Pausing a paused session is no error.
func (p snapshots) Pause(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return sessions(p).change(ctx, cove.SnapshotPause, id, func(ctx context.Context, l *lease, s *cove.Session) error {
		if s.State == cove.Paused {
			return p.v.e.keepResting(ctx, l, cove.ReasonSessionPaused)
		}
		if err := usable(s); err != nil {
			return err
		}
		return p.v.e.freeze(ctx, l, cove.ReasonSessionPaused)
	})
}

// keepResting has a session that is stopped or paused stay so for its caller, who asks
// for that, too. The caller holds the turn.
func (e *Engine) keepResting(ctx context.Context, l *lease, cause string) error {
	if l.view().Cause == cause {
		return nil
	}
	l.change(func(r *cove.Session) { r.Cause = cause })
	return e.save(ctx, l)
}

// freeze holds all that runs in a lease for a cause. The caller holds the turn.
func (e *Engine) freeze(ctx context.Context, l *lease, cause string) error {
	pauser, ok := cove.As[cove.Pauser](l.box())
	if !ok {
		return lacks(l, cove.PowerPause)
	}
	if err := pauser.Pause(ctx); err != nil {
		return err
	}
	return e.moveTo(ctx, l, cove.Paused, cause)
}

// Resume implements [cove.Snapshots]. Resuming a running session is no error.
func (p snapshots) Resume(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return sessions(p).change(ctx, cove.SnapshotResume, id, func(ctx context.Context, l *lease, s *cove.Session) error {
		switch {
		case s.State == cove.Paused:
			return p.v.e.thaw(ctx, l)
		case s.State == cove.Stopped && s.Cause != cove.ReasonSessionStopped: // it was paused, and evicted
			return p.v.e.wake(ctx, l, cove.RejectWhenFull, nil)
		}
		return usable(s)
	})
}

// thaw lets a paused lease go on. The caller holds the turn.
func (e *Engine) thaw(ctx context.Context, l *lease) error {
	pauser, ok := cove.As[cove.Pauser](l.box())
	if !ok {
		return lacks(l, cove.PowerPause)
	}
	if err := pauser.Resume(ctx); err != nil {
		return err
	}
	return e.moveTo(ctx, l, cove.Running, "")
}

// paused is [cove.KernelRun.Paused] of what runs in a lease.
func (l *lease) paused() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rec.State != cove.Paused {
		return nil
	}
	if l.goesOn == nil {
		l.goesOn = make(chan struct{})
	}
	return l.goesOn
}

// moveTo records another state of a lease that keeps its sandbox.
func (e *Engine) moveTo(ctx context.Context, l *lease, state cove.State, cause string) error {
	now := time.Now()
	l.mu.Lock()
	l.rec.State, l.rec.Cause, l.runsSince = state, cause, now
	if state != cove.Paused && l.goesOn != nil {
		close(l.goesOn)
		l.goesOn = nil
	}
	l.touch(now)
	if spec := &l.rec.Spec; lasts(spec) {
		l.rec.ExpiresAt = now.Add(spec.Idle)
		if state == cove.Paused {
			l.rec.ExpiresAt = now.Add(e.keepOf(spec))
		}
	}
	l.mu.Unlock()
	return e.save(ctx, l)
}

// box is the sandbox of a lease, or nil.
func (l *lease) box() cove.Sandbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sandbox
}

// Snapshot implements [cove.Snapshots].
func (p snapshots) Snapshot(ctx context.Context, id cove.ID, req cove.SnapshotRequest) (*cove.Snapshot, error) {
	return act(ctx, p.v, on(cove.SnapshotSnapshot, id), func(ctx context.Context, st *step) (*cove.Snapshot, error) {
		saved, err := once(ctx, p.v.e, p.v.p, deed[*cove.Snapshot]{
			key: req.IdempotencyKey, verb: cove.SnapshotSnapshot, on: id, what: req.Name,
			do: func(made cove.ID) (*cove.Snapshot, cove.ID, error) {
				rec, err := p.v.e.snapshot(ctx, st.lease, made, req.Name)
				return rec, made, err
			},
			again: func(made cove.ID) (*cove.Snapshot, error) { return p.v.e.snapshotOf(ctx, p.v.p.Tenant, made) },
		})
		if err == nil {
			st.outcome.Data = madeSession(saved.ID)
		}
		return saved, err
	})
}

// snapshot saves the files of a lease, once nobody is changing it.
func (e *Engine) snapshot(ctx context.Context, l *lease, id cove.ID, name string) (*cove.Snapshot, error) {
	if err := l.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer l.giveTurn()
	return e.saveFiles(ctx, l, l.view(), id, name)
}

// saveFiles makes a snapshot of a lease's files. The caller holds the turn.
func (e *Engine) saveFiles(ctx context.Context, l *lease, s *cove.Session, id cove.ID, name string) (*cove.Snapshot, error) {
	if len(name) > 256 {
		return nil, cove.InvalidField("name", "is longer than 256 bytes")
	}
	box := l.box()
	if box == nil {
		return nil, usable(s)
	}
	if err := decided(s); err != nil {
		return nil, err
	}
	shooter, ok := cove.As[cove.Snapshotter](box)
	if !ok {
		return nil, lacks(l, cove.PowerSnapshot)
	}
	item, weight := diskItem{diskSnapshot, string(id)}, diskWeight(ctx, box)
	if err := e.planDisk(ctx, s.Tenant, item, weight); err != nil {
		return nil, err
	}
	rec := &cove.Snapshot{
		ID: id, Tenant: s.Tenant, Session: s.ID, Name: name, Node: e.ownNode(),
		Provider: s.Provider, Template: s.Spec.Template, CreatedAt: time.Now(), Pending: true,
	}
	// The record comes first: what a crash leaves of the files is found by it.
	if err := e.cfg.Store.PutSnapshot(ctx, rec); err != nil {
		e.freeDisk(item)
		return nil, err
	}
	size, err := shooter.Snapshot(ctx, rec.ID)
	if err == nil {
		rec.Size, rec.Disk, rec.Pending = size, max(size, weight), false
		err = e.growDisk(ctx, s.Tenant, item, rec.Disk, false)
	}
	if err == nil {
		err = e.cfg.Store.PutSnapshot(ctx, rec)
	}
	if err != nil {
		if derr := e.dropSnapshot(context.WithoutCancel(ctx), rec); derr != nil {
			e.cfg.Logger.ErrorContext(ctx, "remove snapshot; the next start tries again", errAttr(derr), providerAttr(rec.Provider))
		}
		return nil, err
	}
	return rec, nil
}

// dropSnapshot removes a snapshot: it is marked, then its files go, then the
// record, so that a crash in between is made good at the next start.
func (e *Engine) dropSnapshot(ctx context.Context, rec *cove.Snapshot) error {
	if !rec.Pending {
		rec.Pending = true
		if err := e.cfg.Store.PutSnapshot(ctx, rec); err != nil {
			return err
		}
	}
	if p, ok := e.probes.provider(rec.Provider); ok {
		if keeper, ok := cove.As[cove.SnapshotKeeper](p); ok {
			if err := keeper.RemoveSnapshot(ctx, rec.ID); err != nil {
				return err
			}
		}
	}
	if err := e.cfg.Store.DeleteSnapshot(ctx, rec.ID); err != nil {
		return err
	}
	e.freeDisk(diskItem{diskSnapshot, string(rec.ID)})
	return nil
}

// recoverSnapshots counts the snapshots that are there, and removes what a crash left
// half made or half removed. What cannot be removed now waits for the next start.
func (e *Engine) recoverSnapshots(ctx context.Context) error {
	var half []*cove.Snapshot
	for rec, err := range e.cfg.Store.Snapshots(ctx, cove.SnapshotFilter{}) {
		if err != nil {
			return err
		}
		if e.onlyHere(rec.Node) != nil {
			continue
		}
		e.countDisk(rec.Tenant, diskItem{diskSnapshot, string(rec.ID)}, max(rec.Disk, rec.Size, leastItem))
		if rec.Pending {
			half = append(half, rec)
		}
	}
	for _, rec := range half {
		if err := e.removeHalf(ctx, rec); err != nil {
			e.cfg.Logger.WarnContext(ctx, "remove half a snapshot; the next start tries again", errAttr(err), providerAttr(rec.Provider))
		}
	}
	return nil
}

func (e *Engine) removeHalf(ctx context.Context, rec *cove.Snapshot) error {
	if _, ok := e.probes.provider(rec.Provider); !ok {
		return cove.Errorf(cove.Unavailable, "provider %s is not part of this server any more", rec.Provider)
	}
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	if err := e.dropSnapshot(ctx, rec); err != nil {
		return err
	}
	e.note(ctx, "snapshot.aborted", &cove.Session{ID: rec.Session, Tenant: rec.Tenant, Provider: rec.Provider},
		"the server stopped while the snapshot was being made or removed")
	return nil
}

// checkSnapshot reports a snapshot that a session cannot start from.
func (e *Engine) checkSnapshot(ctx context.Context, s *cove.Session, provider cove.Provider) error {
	id := s.Spec.Snapshot
	if id == "" || s.Archived {
		return nil
	}
	rec, err := e.snapshotOf(ctx, s.Tenant, id)
	if err != nil {
		return err
	}
	if err := e.onlyHere(rec.Node); err != nil {
		return err
	}
	if rec.Provider != provider.Name() {
		return cove.InvalidField("snapshot", "was made by provider %s; open the session with that one", rec.Provider)
	}
	return nil
}

// snapshotOf returns a tenant's snapshot.
func (e *Engine) snapshotOf(ctx context.Context, tenant string, id cove.ID) (*cove.Snapshot, error) {
	missing := cove.Errorf(cove.NotFound, "there is no snapshot %.40q", string(id))
	if !id.Valid() {
		return nil, missing
	}
	rec, err := e.cfg.Store.GetSnapshot(ctx, id)
	if cove.CodeOf(err) == cove.NotFound || err == nil && (rec.Tenant != tenant || rec.Pending) {
		return nil, missing
	}
	return rec, err
}

// List implements [cove.Snapshots].
func (p snapshots) List(ctx context.Context, f cove.SnapshotFilter) iter.Seq2[*cove.Snapshot, error] {
	a := action{Action: cove.Action{Verb: cove.SnapshotList}}
	return actSeq(ctx, p.v, a, func(ctx context.Context, _ *step) (iter.Seq2[*cove.Snapshot, error], error) {
		f.Tenant = p.v.p.Tenant
		return finished(p.v.e.cfg.Store.Snapshots(ctx, f)), nil
	})
}

// finished leaves out what nobody is shown.
func finished(list iter.Seq2[*cove.Snapshot, error]) iter.Seq2[*cove.Snapshot, error] {
	return func(yield func(*cove.Snapshot, error) bool) {
		for rec, err := range list {
			if (err != nil || !rec.Pending) && !yield(rec, err) {
				return
			}
		}
	}
}

// Delete implements [cove.Snapshots].
func (p snapshots) Delete(ctx context.Context, snapshot cove.ID) error {
	a := action{Action: cove.Action{Verb: cove.SnapshotDelete}}
	return actDone(ctx, p.v, a, func(ctx context.Context, _ *step) error {
		e := p.v.e
		rec, err := e.snapshotOf(ctx, p.v.p.Tenant, snapshot)
		if err != nil {
			return err
		}
		if e.leftBehind(ctx, rec.Node) {
			return e.cfg.Store.DeleteSnapshot(ctx, rec.ID)
		}
		if err := e.onlyHere(rec.Node); err != nil {
			return err
		}
		if err := e.dropSnapshot(ctx, rec); err != nil {
			rec.Pending = false // so that it can be tried again
			return errors.Join(err, e.cfg.Store.PutSnapshot(context.WithoutCancel(ctx), rec))
		}
		return nil
	})
}
