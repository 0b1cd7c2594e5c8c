package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

// recover makes the table, the providers and the journal agree again after a
// stop or a crash: sessions whose sandbox is there go on, others end with the
// cause, and what nobody owns is removed.
func (e *Engine) recover(ctx context.Context) error {
	var all []*cove.Session
	for s, err := range e.cfg.Store.Sessions(ctx, cove.SessionFilter{Node: e.ownNode()}) {
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	stored, err := e.storedOutputs(all)
	if err != nil {
		return err
	}
	if err := e.recoverAll(ctx, all, stored); err != nil {
		return err
	}
	if err := e.recoverSnapshots(ctx); err != nil {
		return err
	}
	if _, err := e.removeHalfVolumes(ctx); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "remove half a volume; the orphans task tries again", errAttr(err))
	}
	if err := e.recoverRuns(ctx); err != nil {
		return err
	}
	if e.cfg.untouched() {
		return nil
	}
	if _, err := e.removeOrphans(ctx); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "remove orphans; the task tries again", errAttr(err))
	}
	return nil
}

// recoverWidth is how many sessions are taken up at once.
const recoverWidth = 16

// recoverAll takes up many sessions, so that one that is slow does not hold up
// the start of the server for all.
func (e *Engine) recoverAll(ctx context.Context, all []*cove.Session, stored map[cove.ID][]string) error {
	for _, p := range e.cfg.Providers {
		if slices.ContainsFunc(all, func(s *cove.Session) bool { return s.Provider == p.Name() && s.State != cove.Ended }) {
			_, _ = e.probes.of(ctx, p) // once for all of them; attach says what is wrong
		}
	}
	return inParallel(all, func(s *cove.Session) error { return e.recoverOne(ctx, s, stored[s.ID]) })
}

// storedOutputs counts the output that earlier servers kept of sessions, and names its
// files by session, the oldest first.
func (e *Engine) storedOutputs(all []*cove.Session) (map[cove.ID][]string, error) {
	tenants := map[cove.ID]string{}
	for _, s := range all {
		tenants[s.ID] = s.Tenant
	}
	entries, err := fs.ReadDir(e.cfg.Output.FS(), ".")
	if err != nil {
		return nil, err
	}
	stored := map[cove.ID][]string{}
	for _, entry := range entries { // in the order of their names, which begin with a time
		session, _, _ := strings.Cut(entry.Name(), "-")
		id := cove.ID(session)
		info, err := entry.Info()
		if err != nil || tenants[id] == "" {
			continue // it is gone, or removed as an orphan
		}
		stored[id] = append(stored[id], entry.Name())
		e.countDisk(tenants[id], diskItem{diskOutput, entry.Name()}, cove.Bytes(info.Size()))
	}
	return stored, nil
}

// inParallel does something for all of a list, a few at a time.
func inParallel[T any](list []T, do func(T) error) error {
	turns := make(chan struct{}, recoverWidth)
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, item := range list {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			errs[i] = do(item)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (e *Engine) recoverOne(ctx context.Context, s *cove.Session, stored []string) error {
	l := newLease(*s, e.onIdle)
	l.stored = stored
	switch s.State {
	case cove.Running, cove.Paused:
		return e.recoverLive(ctx, l, s)
	case cove.Failed:
		if s.Cause == cove.ReasonProviderDown {
			s.State, s.Cause, s.Was, s.WasCause = cmp.Or(s.Was, cove.Running), s.WasCause, "", "" // older records have no Was
			return e.recoverOne(ctx, s, stored)
		}
	case cove.Stopped:
	case cove.Creating:
		return e.abort(ctx, s)
	case cove.Ended:
		return nil
	}
	return e.takeUp(ctx, l)
}

// recoverLive takes up a session that had a sandbox, with the programs in it.
func (e *Engine) recoverLive(ctx context.Context, l *lease, s *cove.Session) error {
	sandbox, err := e.attach(ctx, s)
	if err == nil {
		l.sandbox, l.runsLines = sandbox, e.probes.shell(s.Provider)
		err = errors.Join(e.takeBack(ctx, l, sandbox), steerBack(ctx, sandbox, s.Spec.Network))
	}
	if err == nil {
		err = e.resumePrograms(ctx, l)
	}
	if err == nil { // last: the agent of a paused sandbox cannot say which programs it keeps
		err = asRecorded(ctx, sandbox, s.State)
	}
	switch {
	case cove.CodeOf(err) == cove.NotFound:
		l.letGo(ctx)
		return e.lose(ctx, l, s, err)
	case err != nil: // nobody knows whether its sandbox lives: keep it for the next start
		e.cfg.Logger.WarnContext(ctx, "session kept until its provider is back", sessionAttr(s.ID), providerAttr(s.Provider), errAttr(err))
		l.letGo(ctx)
		l.change(func(r *cove.Session) {
			r.State, r.Cause, r.Was, r.WasCause = cove.Failed, cove.ReasonProviderDown, s.State, s.Cause
		})
		return e.takeUp(ctx, l)
	}
	e.spentBefore(ctx, l, sandbox)
	l.ticket = e.gate.Admit(admission.Claim{Tenant: s.Tenant, Memory: s.Spec.Resources.Memory})
	l.mu.Lock()
	// Activity is not written down at every step, so nobody knows how long
	// the session was idle: it gets its whole time anew.
	l.heldSince = time.Now()
	l.runsSince = l.heldSince
	l.touch(l.heldSince)
	// One that runs has all its files, and the archive it was made from is old.
	l.rec.Archived, l.rec.ArchiveSize = false, 0
	l.mu.Unlock()
	e.workspaceMade(l)
	if err := e.takeUp(ctx, l); err != nil {
		l.letGo(ctx)
		return err
	}
	return nil
}

// asRecorded pauses a sandbox or lets it go on, as its record says: Attach lets a paused
// one go on, and a crash may have come between a pause and its record.
func asRecorded(ctx context.Context, sandbox cove.Sandbox, state cove.State) error {
	pauser, ok := cove.As[cove.Pauser](sandbox)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	if state == cove.Paused {
		return pauser.Pause(ctx)
	}
	return pauser.Resume(ctx)
}

// attach finds the sandbox of a session again. One that has died is NotFound.
func (e *Engine) attach(ctx context.Context, s *cove.Session) (cove.Sandbox, error) {
	p, ok := e.probes.provider(s.Provider)
	if !ok {
		return nil, cove.Errorf(cove.Unavailable, "provider %s is not part of this server any more", s.Provider)
	}
	if _, err := e.probes.of(ctx, p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	sandbox, err := p.Attach(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	if m, ok := cove.As[cove.Mortal](sandbox); ok {
		select {
		case <-m.Died():
			return nil, cove.Errorf(cove.NotFound, "sandbox %s died while there was no server", s.ID)
		default:
		}
	}
	return sandbox, nil
}

// abort forgets a session whose making a crash cut short.
func (e *Engine) abort(ctx context.Context, s *cove.Session) error {
	e.note(ctx, "session.aborted", s, "the server stopped while it was being made")
	return e.cfg.Store.DeleteSession(ctx, s.ID)
}

// lose ends a session whose sandbox is gone, and says so. One whose files are
// still in the archive, because a crash came while it was waking up, is stopped
// again instead.
func (e *Engine) lose(ctx context.Context, l *lease, s *cove.Session, cause error) error {
	e.cfg.Logger.WarnContext(ctx, "session lost", sessionAttr(s.ID), providerAttr(s.Provider), errAttr(cause))
	if s.Archived {
		l.rec.State, l.rec.ExpiresAt = cove.Stopped, time.Now().Add(e.keepOf(&s.Spec))
		return e.takeUp(ctx, l)
	}
	l.rec.State, l.rec.Cause, l.rec.EndedAt = cove.Ended, cove.ReasonNodeLost, time.Now()
	if err := e.save(ctx, l); err != nil {
		return err
	}
	e.note(ctx, "session.lost", s, cove.MessageOf(cause))
	e.tellSessionEnd(ctx, l)
	return nil
}

// takeUp puts a lease from an earlier life into the table.
func (e *Engine) takeUp(ctx context.Context, l *lease) error {
	if err := e.save(ctx, l); err != nil {
		return err
	}
	if _, err := e.tenants.load(ctx, l.tenant); err != nil { // what it consumes is booked there
		return err
	}
	s := l.view()
	e.mu.Lock()
	e.insert(l, s)
	e.mu.Unlock()
	e.note(ctx, "session.recovered", s, string(s.State))
	return nil
}

// recoverRuns ends the runs that a stop cut short.
func (e *Engine) recoverRuns(ctx context.Context) error {
	var cut []*cove.Run
	for r, err := range e.cfg.Store.Runs(ctx, cove.RunFilter{State: cove.RunRunning}) {
		if err != nil {
			return err
		}
		if e.onlyHere(r.Node) == nil {
			cut = append(cut, r)
		}
	}
	for _, r := range cut {
		if err := e.cutShort(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// endRunsLeft ends the runs of nodes that are gone.
func (e *Engine) endRunsLeft(ctx context.Context) error {
	gone := map[string]bool{}
	for r, err := range e.cfg.Store.Runs(ctx, cove.RunFilter{State: cove.RunRunning}) {
		if err != nil {
			return err
		}
		if _, asked := gone[r.Node]; !asked {
			gone[r.Node] = e.leftBehind(ctx, r.Node)
		}
		if !gone[r.Node] {
			continue
		}
		if err := e.cutShort(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// cutShort ends a run whose server stopped.
func (e *Engine) cutShort(ctx context.Context, r *cove.Run) error {
	r.State, r.EndedAt = cove.RunFailed, time.Now()
	r.Answer = &cove.RunAnswer{Status: "error", Provider: cmp.Or(r.Request.Provider, e.cfg.Provider), Error: &cove.RunError{
		Type: cove.RunUnavailable, Message: "the server stopped while the run went on; submit it again",
	}}
	return e.cfg.Store.PutRun(ctx, r)
}
