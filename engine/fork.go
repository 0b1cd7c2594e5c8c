package engine

import (
	"context"
	"errors"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

// Fork implements [cove.Snapshots].
func (p snapshots) Fork(ctx context.Context, id cove.ID, as cove.ForkRequest) (*cove.Session, error) {
	return act(ctx, p.v, on(cove.SnapshotFork, id), func(ctx context.Context, st *step) (*cove.Session, error) {
		e := p.v.e
		req := cove.OpenRequest{
			Spec:           cove.Spec{User: as.User, Thread: as.Thread, Metadata: as.Metadata},
			IdempotencyKey: as.IdempotencyKey,
		}
		if err := req.Validate(); err != nil {
			return nil, err
		}
		s, err := once(ctx, e, p.v.p, deed[*cove.Session]{
			key: as.IdempotencyKey, verb: cove.SnapshotFork, on: id, what: req.Spec,
			do: func(made cove.ID) (*cove.Session, cove.ID, error) {
				return idOf(e.fork(ctx, p.v.p, st.lease, req.Spec, made))
			},
			again: func(made cove.ID) (*cove.Session, error) { return e.claimed(p.v.p.Tenant, made) },
		})
		if err == nil {
			st.outcome.Data = madeSession(s.ID)
		}
		return s, err
	})
}

// fork doubles a running session under a new id. Both have the same volumes.
func (e *Engine) fork(ctx context.Context, p cove.Principal, from *lease, as cove.Spec, id cove.ID) (*cove.Session, error) {
	if err := from.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer from.giveTurn()
	s := from.view()
	if err := errors.Join(usable(s), decided(s)); err != nil {
		return nil, err
	}
	forker, ok := cove.As[cove.Forker](from.box())
	if !ok {
		return nil, lacks(from, cove.PowerFork)
	}
	if err := e.cordonedOff(ctx, s.Spec); err != nil {
		return nil, err
	}
	spec := s.Spec.Clone()
	spec.User, spec.Thread, spec.Metadata = as.User, as.Thread, as.Metadata
	l, mine, err := e.reserve(p, spec, id)
	if err != nil {
		return nil, err
	}
	if !mine {
		return nil, threadTaken(l.id)
	}
	defer l.giveTurn()
	if err := e.double(ctx, l, s, forker); err != nil {
		l.change(func(s *cove.Session) { s.State, s.Cause = cove.Ended, cove.ReasonSessionClosed })
		e.forget(l)
		if holder, elsewhere := heldElsewhere(err); elsewhere {
			return nil, threadTaken(holder)
		}
		return nil, err
	}
	e.tenants.count(l.tenant, tally{opened: 1})
	out := l.view()
	out.Created = true
	e.tell(ctx, out, cove.Happening{Kind: cove.SessionCreated, Wall: time.Since(out.CreatedAt)})
	return out, nil
}

// threadTaken is the answer where a session has the user and thread that a copy is to have.
func threadTaken(by cove.ID) error {
	return cove.Errorf(cove.Conflict, "user_id and thread_id have a live session already").
		With("session_id", string(by)).Remedy("leave them out, or close that session first")
}

// double makes the copy's sandbox. It holds both turns.
func (e *Engine) double(ctx context.Context, l *lease, from *cove.Session, forker cove.Forker) (err error) {
	made, err := e.makeOneMore(ctx)
	if err != nil {
		return err
	}
	defer made()
	ticket, err := e.admit(ctx, l, cove.RejectWhenFull, nil)
	if err != nil {
		return err
	}
	l.change(func(s *cove.Session) { s.Provider = from.Provider })
	if err = e.save(ctx, l); err == nil {
		err = e.adopt(ctx, l, ticket, func(ctx context.Context) (cove.Sandbox, error) {
			asked := l.view().Spec
			spec, err := e.withFolders(ctx, l.tenant, asked)
			if err != nil {
				return nil, err
			}
			sandbox, err := forker.Fork(ctx, l.id, spec)
			return sandbox, notMade(withoutFolders(beginsTooLarge(err, from.Spec), asked.Volumes, spec.Volumes))
		})
	}
	if err == nil {
		e.resumeContexts(ctx, l)
	}
	if err != nil {
		ticket.Leave()
		_ = e.cfg.Store.DeleteSession(context.WithoutCancel(ctx), l.id) // recovery removes what is left
	}
	return err
}

// adopt puts a sandbox that make gives into a lease and marks it running. On
// error the sandbox is gone.
func (e *Engine) adopt(ctx context.Context, l *lease, ticket *admission.Ticket, create func(context.Context) (cove.Sandbox, error)) error {
	if s := l.view(); s.Spec.Workspace.Kind == cove.WorkspaceDisk {
		share := diskShare{tenant: l.tenant, bytes: workspaceOnDisk(s.Spec.Workspace), planned: true}
		// A stopped session can always start again: only the reserve can refuse it.
		if err := e.takeDisk(ctx, workspaceItem(l), share, s.Archived); err != nil {
			return err
		}
	}
	sandbox, err := create(ctx)
	if err != nil {
		e.freeDisk(workspaceItem(l))
		return err
	}
	e.workspaceMade(l)
	l.mu.Lock()
	was := l.rec
	l.sandbox, l.ticket, l.runsLines = sandbox, ticket, e.probes.shell(l.rec.Provider)
	l.sample = sample{}
	l.rec.State, l.rec.Isolation = cove.Running, sandbox.Isolation()
	l.heldSince = time.Now()
	l.runsSince = l.heldSince
	l.touch(l.heldSince)
	if l.rec.Spec.FixedEnd { // its time is that of the sandbox, not of the wait for it
		l.rec.ExpiresAt = l.heldSince.Add(l.rec.Spec.Idle)
	}
	l.mu.Unlock()
	if err := e.save(ctx, l); err != nil {
		l.mu.Lock()
		l.sandbox, l.ticket, l.heldSince = nil, nil, time.Time{}
		l.rec.State, l.rec.Isolation, l.rec.ExpiresAt = was.State, was.Isolation, was.ExpiresAt
		l.mu.Unlock()
		e.destroy(ctx, sandbox)
		e.freeDisk(workspaceItem(l))
		return err
	}
	return nil
}

// workspaceMade counts the workspace of a sandbox that is there.
func (e *Engine) workspaceMade(l *lease) {
	if w := l.view().Spec.Workspace; w.Kind == cove.WorkspaceDisk {
		e.countDisk(l.tenant, workspaceItem(l), workspaceOnDisk(w))
	}
}
