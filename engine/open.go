package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

// getOrCreate returns the live session of the request's key, or makes one with an
// id.
func (e *Engine) getOrCreate(ctx context.Context, p cove.Principal, req cove.OpenRequest, id cove.ID) (*cove.Session, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	spec, err := e.resolve(p, req.Spec)
	if err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		l, mine, err := e.reserve(p, spec, id)
		if err != nil {
			return nil, err
		}
		if mine {
			s, err := e.create(ctx, l, req)
			held, nobodys := heldByNobody(err)
			if !nobodys || tries >= mostAdoptions {
				return s, err
			}
			if _, err := e.adoptStopped(ctx, held); err != nil {
				return nil, err
			}
			id = cove.NewID()
			continue
		}
		s, err := e.reuse(ctx, l, req, spec)
		if !errors.Is(err, errVanished) {
			return s, err
		}
	}
}

// mostAdoptions is how often a session that is nobody's is taken up for one request:
// others may be faster, and give it away again.
const mostAdoptions = 3

// errVanished says that a session ended between finding it and using it.
var errVanished = errors.New("the session ended meanwhile")

// reserve finds the lease of a spec's key, or puts a fresh one with an id into the
// table so that whoever comes next waits for it.
func (e *Engine) reserve(p cove.Principal, spec cove.Spec, id cove.ID) (l *lease, mine bool, err error) {
	now := time.Now()
	rec := cove.Session{
		ID: id, Tenant: p.Tenant, Owner: p.Name, Spec: spec, State: cove.Creating, Node: e.cfg.Node, Memory: spec.Resources.Memory,
		CreatedAt: now, LastActivity: now, ExpiresAt: now.Add(spec.Idle),
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, false, shuttingDown()
	}
	if k, ok := keyOf(&rec); ok {
		if l := e.keys[k]; l != nil {
			return l, false, nil
		}
	}
	if most := p.Limits.Sessions; most > 0 && e.owners[p.Name] >= most {
		return nil, false, cove.Errorf(cove.Exhausted, "this key has %d sessions, as many as it may", most).
			Reason(cove.ReasonKeyQuota).With("retry_after", 5).Remedy("close one first")
	}
	l = newLease(rec, e.onIdle)
	<-l.turn // create gives it back
	e.insert(l, &rec)
	return l, true, nil
}

// reuse hands out a session that exists, once nobody is changing it.
func (e *Engine) reuse(ctx context.Context, l *lease, req cove.OpenRequest, spec cove.Spec) (*cove.Session, error) {
	if req.OnFull != cove.WaitWhenFull && l.isQueued() {
		return nil, waitsForRoom().Remedy("wait with on_full, or try again later")
	}
	began := time.Now()
	if err := l.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer l.giveTurn()
	err := e.certain(l)
	s := l.view()
	switch {
	case s.State == cove.Ended:
		return nil, errVanished
	case err != nil:
		return nil, err
	}
	if cause, over := l.over(time.Now()); over || !s.State.Live() {
		if s.State == cove.Failed {
			cause = s.Cause
		}
		if err := e.end(ctx, l, cause); err != nil {
			return nil, err
		}
		return nil, errVanished
	}
	if l.isAtFixedEnd(time.Now()) {
		if _, err := e.atEnd(ctx, l); err != nil {
			return nil, err
		}
	}
	s = l.view()
	if s.Spec.OnEnd == "" { // in records of older versions
		s.Spec.OnEnd = cove.EndClose
	}
	if fields := s.Spec.Differs(asHeld(req.Spec, spec)); len(fields) > 0 {
		return nil, cove.Errorf(cove.Conflict, "session %s is live and was opened with other %s", s.ID, strings.Join(fields, ", ")).
			Reason(cove.ReasonSpecDiffers).With("fields", fields).With("session_id", string(s.ID)).
			Remedy("leave the fields out, or close the session first")
	}
	if s.State == cove.Stopped {
		if err := e.wake(ctx, l, req.OnFull, req.OnQueue); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	l.touch(time.Now())
	l.mu.Unlock()
	e.tenants.count(l.tenant, tally{opened: 1, reused: 1})
	out := l.view()
	e.tell(ctx, out, cove.Happening{Kind: cove.SessionReused, Wall: time.Since(began)})
	return out, nil
}

func waitsForRoom() *cove.Error {
	return cove.Errorf(cove.Exhausted, "another caller waits already until there is room for the session").Reason(cove.ReasonCapacity).With("retry_after", 5)
}

// asHeld returns the fields of a request in the form in which a session
// has them, so that the two can be compared.
func asHeld(asked, resolved cove.Spec) cove.Spec {
	want := asked.Clone()
	if asked.Env != nil {
		want.Env = resolved.Env
	}
	if asked.Template != "" {
		want.Template = resolved.Template
	}
	if asked.Metadata != nil {
		want.Metadata = resolved.Metadata
	}
	if asked.Volumes != nil {
		want.Volumes = resolved.Volumes
	}
	return want
}

// create makes the sandbox of a reserved lease. It holds the lease's turn.
func (e *Engine) create(ctx context.Context, l *lease, req cove.OpenRequest) (*cove.Session, error) {
	defer l.giveTurn()
	err := e.cordonedOff(ctx, l.view().Spec)
	if err == nil {
		err = e.give(ctx, l, req.OnFull, req.OnQueue)
	}
	if err != nil {
		l.change(func(s *cove.Session) { s.State, s.Cause = cove.Ended, cove.ReasonSessionClosed })
		e.forget(l)
		if derr := e.cfg.Store.DeleteSession(context.WithoutCancel(ctx), l.id); derr != nil {
			e.cfg.Logger.ErrorContext(ctx, "delete record of a session that could not be made", errAttr(derr), sessionAttr(l.id))
		}
		return nil, err
	}
	e.tenants.count(l.tenant, tally{opened: 1})
	s := l.view()
	s.Created = true
	e.tell(ctx, s, cove.Happening{Kind: cove.SessionCreated, Wall: time.Since(s.CreatedAt)})
	return s, nil
}

// give takes room and puts a sandbox into a lease that has none. On error the
// room is free again and no sandbox is left.
func (e *Engine) give(ctx context.Context, l *lease, onFull cove.OnFull, told func(int)) error {
	s := l.view()
	by, err := e.choose(ctx, s.Spec)
	if err != nil {
		return notMade(err)
	}
	if err := e.checkSnapshot(ctx, s, by); err != nil {
		return err
	}
	if err := e.checkVolumes(ctx, s); err != nil {
		return err
	}
	made, err := e.makeOneMore(ctx)
	if err != nil {
		return err
	}
	defer made()
	ticket, err := e.admit(ctx, l, onFull, told)
	if err != nil {
		return err
	}
	err = e.giveBy(ctx, l, by, ticket)
	others := othersWait{e: e}
	defer others.leave()
	for e.fullElsewhere(err) {
		ticket.Leave()
		if err := others.await(ctx, l, onFull, told, err); err != nil {
			return err
		}
		if ticket, err = e.admit(ctx, l, onFull, told); err != nil {
			return err
		}
		err = e.giveBy(ctx, l, by, ticket)
	}
	// Each time another one: there are not more of them than the order has names.
	for range e.cfg.Fallback {
		next, ok := e.another(ctx, s.Spec, by, err)
		if err == nil || !ok || e.checkSnapshot(ctx, s, next) != nil {
			break
		}
		by = next
		if again := e.giveBy(ctx, l, by, ticket); again == nil || cove.CodeOf(again) != cove.Unavailable {
			err = again
		}
	}
	if err != nil {
		ticket.Leave()
		return err
	}
	if by.instead != "" {
		e.sayInstead(ctx, l.view(), by.why)
	}
	return nil
}

// makeOneMore refuses to make a sandbox for which there are no file descriptors. made
// must be called when it has its own, or there is none.
func (e *Engine) makeOneMore(ctx context.Context) (made func(), err error) {
	making := e.making.Add(1)
	made = func() { e.making.Add(-1) }
	if e.cfg.Descriptors != nil {
		err = e.cfg.Descriptors(making)
		for err != nil && e.endSpare(ctx) {
			err = e.cfg.Descriptors(making)
		}
	}
	if err != nil {
		made()
		return nil, err
	}
	return made, nil
}

// giveBy puts a sandbox of one provider into a lease.
func (e *Engine) giveBy(ctx context.Context, l *lease, by choice, ticket *admission.Ticket) error {
	l.change(func(r *cove.Session) {
		r.Provider, r.Spec.Provider = by.Name(), by.Name()
		if !by.named { // as a session that starts again is, which keeps what it says
			r.Instead = by.instead
		}
	})
	if err := e.save(ctx, l); err != nil {
		return err
	}
	if err := e.roomElsewhere(ctx, l.view()); err != nil {
		return err
	}
	return e.install(ctx, l, by, ticket)
}

// install makes the sandbox, restores its files and marks the lease running.
func (e *Engine) install(ctx context.Context, l *lease, provider cove.Provider, ticket *admission.Ticket) error {
	s := l.view()
	err := e.adopt(ctx, l, ticket, func(ctx context.Context) (cove.Sandbox, error) {
		sandbox, err := e.makeSandbox(ctx, l, provider, s)
		if err != nil || !s.Archived {
			return sandbox, err
		}
		err = e.restore(ctx, sandbox, s)
		if err == nil {
			l.change(func(r *cove.Session) { r.Enlarged = cove.Workspace{} })
			return sandbox, nil
		}
		e.destroy(ctx, sandbox)
		if cove.ReasonOf(err) == cove.ReasonWorkspaceFull {
			return e.restoreEnlarged(ctx, l, provider, err)
		}
		return nil, err
	})
	if err != nil {
		l.cool(ctx)
	} else if s.Spec.Snapshot != "" && !s.Archived {
		e.resumeContexts(ctx, l)
	}
	return err
}

// makeSandbox takes a spare from the pool or makes a sandbox from scratch.
func (e *Engine) makeSandbox(ctx context.Context, l *lease, provider cove.Provider, s *cove.Session) (cove.Sandbox, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.StartTimeout,
		cove.Errorf(cove.Timeout, "the sandbox did not start within %s", e.cfg.StartTimeout))
	defer cancel()
	if s.Archived {
		s.Spec.Snapshot = "" // the archive is newer, and what was deleted since stays deleted
	}
	named := s.Spec.Volumes
	var err error
	if s.Spec, err = e.withFolders(ctx, s.Tenant, s.Spec); err != nil {
		return nil, err
	}
	sandbox, err := e.fromPool(ctx, l, s)
	if sandbox == nil && err == nil {
		sandbox, err = provider.Create(ctx, s.ID, s.Spec)
	}
	if err != nil {
		err = withoutFolders(beginsTooLarge(err, s.Spec), named, s.Spec.Volumes)
		e.probes.doubt(provider.Name())
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
			return nil, notMade(cause)
		}
	}
	return sandbox, notMade(err)
}

// notMade marks the error of a provider that made no sandbox, unless the request
// is to blame for it, or a bound, or the caller who left.
func notMade(err error) error {
	switch cove.CodeOf(err) { //nolint:exhaustive // the others say themselves what is wrong
	case cove.Unsupported, cove.Unavailable, cove.Timeout, cove.Internal:
		return cove.WithReason(err, cove.ReasonSandboxCreation)
	}
	return err
}

func (e *Engine) fromPool(ctx context.Context, l *lease, s *cove.Session) (cove.Sandbox, error) {
	if s.Spec.Snapshot != "" {
		return nil, nil //nolint:nilnil // no spare has these files: the caller makes one
	}
	mold := e.cfg.moldOf(s.Provider, s.Spec)
	if e.cfg.Spare != nil {
		if spare, ok := e.cfg.Spare(ctx, mold); ok {
			return e.claim(ctx, l, spare, s)
		}
	}
	if mold.Solo {
		spare, err := e.prepare(ctx, mold)
		if err != nil {
			return nil, err
		}
		return e.claim(ctx, l, spare, s)
	}
	if len(s.Spec.Volumes) > 0 {
		return nil, nil //nolint:nilnil // what is mounted is decided when a sandbox is made: a spare would be used up for nothing
	}
	spare, ok := e.pool.Take(mold)
	e.warmth.taken(mold, s.Spec.Resources.PIDs, spare)
	e.tasks.Kick("pool")
	e.tellPool(ctx, s, ok)
	if !ok {
		return nil, nil //nolint:nilnil // an empty pool is no error: the caller makes one
	}
	return e.claim(ctx, l, spare, s)
}

func (c Config) moldOf(provider string, s cove.Spec) cove.Mold {
	m := cove.Mold{Provider: provider, Template: s.Template, Workspace: s.Workspace.Kind, Solo: c.Solo && c.canSolo(provider) && transient(s) && c.programs(s, nil) == nil}
	if m.Solo {
		m.Resources = s.Resources
	}
	return m
}

// untouched reports that there is nothing to look for or to tidy up.
func (c Config) untouched() bool { return c.Fleeting && c.Solo && c.Fresh }

// canSolo reports whether a provider makes sandboxes for one program.
func (c Config) canSolo(provider string) bool {
	i := slices.IndexFunc(c.Providers, func(p cove.Provider) bool { return p.Name() == provider })
	if i < 0 {
		return false
	}
	_, ok := cove.As[cove.Soloist](c.Providers[i])
	return ok
}

// transient reports whether a spec asks for nothing but room for a program.
func transient(s cove.Spec) bool {
	return s.Snapshot == "" && len(s.Volumes) == 0 && len(s.Ports) == 0 &&
		(s.Network.Mode == "" || s.Network.Mode == cove.NetworkNone) && (s.Workspace.Kind == "" || s.Workspace.Kind == cove.WorkspaceMemory)
}

// MoldOf returns the mold of the sandbox that an engine of this configuration
// would make for s, and whether a spare would do for it. It does not look at
// whether the spec can be served.
func (c Config) MoldOf(s cove.Spec) (cove.Mold, bool) {
	asked := cove.Spec{
		Provider: s.Provider, Template: s.Template, Workspace: cove.Workspace{Kind: s.Workspace.Kind}, Snapshot: s.Snapshot,
		Network: s.Network, Volumes: slices.Concat(c.Shared, s.Volumes), Ports: s.Ports,
	}
	c = c.withDefaults()
	asked = fill(asked, c.Defaults)
	asked.Resources = c.resources(s)
	or(&asked.Provider, c.Provider)
	return c.moldOf(asked.Provider, asked), asked.Snapshot == ""
}

// prepare makes a spare for the pool.
func (e *Engine) prepare(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	p, ok := e.probes.provider(m.Provider)
	if !ok {
		return nil, cove.Errorf(cove.Unsupported, "provider %s is not there", m.Provider)
	}
	if e.cfg.Descriptors != nil {
		if err := e.cfg.Descriptors(e.making.Load() + 1); err != nil {
			return nil, err
		}
	}
	if m.Solo {
		if soloist, ok := cove.As[cove.Soloist](p); ok {
			return soloist.PrepareSolo(ctx, m)
		}
	}
	preparer, ok := cove.As[cove.Preparer](p)
	if !ok {
		return nil, cove.Errorf(cove.Unsupported, "provider %s cannot prepare sandboxes", m.Provider)
	}
	return preparer.Prepare(ctx, m)
}

// destroy ends a sandbox that no record speaks of any more. What it cannot
// end now the orphans task tries again.
func (e *Engine) destroy(ctx context.Context, sandbox cove.Sandbox) {
	if sandbox == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyTime)
	defer cancel()
	if err := sandbox.Destroy(ctx); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "destroy sandbox; the orphans task tries again", errAttr(err), sessionAttr(sandbox.ID()))
	}
}

const destroyTime = 30 * time.Second

func providerAttr(name string) slog.Attr { return slog.String("provider", name) }
