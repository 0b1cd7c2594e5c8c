package engine

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cove-sandbox/cove"
)

// rest ends what runs in a lease, archives its workspace and frees its sandbox for a
// cause. The caller holds the turn. On error the session keeps its sandbox and files.
func (e *Engine) rest(ctx context.Context, l *lease, cause string) error {
	s := l.view()
	l.mu.Lock()
	sandbox, ticket := l.sandbox, l.ticket
	l.mu.Unlock()
	l.setResting(cause)
	defer l.endRest()
	saved := diskItem{diskArchive, string(l.id)}
	if err := e.planDisk(ctx, l.tenant, saved, diskWeight(ctx, sandbox)); err != nil {
		return unsaved(err) // before anything is ended
	}
	contexts := l.contextsOf()
	l.endPrograms(ctx)
	if cause != cove.ReasonSessionStopped { // callers that opened them know of no stop
		l.reopen(contexts)
	}
	size, err := e.saveWorkspace(ctx, l, sandbox)
	if err != nil {
		e.freeDisk(saved)
		return err
	}
	size = max(size, leastItem)
	e.countDisk(l.tenant, saved, size)
	// Not before: whoever saves the record meanwhile must not say that the
	// session is stopped when its files are nowhere but in the sandbox.
	l.change(func(r *cove.Session) {
		r.State, r.Cause, r.Archived, r.ArchiveSize = cove.Stopped, cause, true, size
		r.ExpiresAt = time.Now().Add(e.keepOf(&r.Spec))
	})
	if err := e.save(ctx, l); err != nil {
		l.change(func(r *cove.Session) {
			r.State, r.Cause, r.Archived, r.ArchiveSize, r.ExpiresAt = s.State, s.Cause, s.Archived, s.ArchiveSize, s.ExpiresAt
		})
		e.freeDisk(saved)
		return err
	}
	l.mu.Lock()
	l.sandbox, l.ticket = nil, nil
	l.rec.Counted = nil // what was kept goes with the sandbox
	l.mu.Unlock()
	e.bookLast(l)
	e.spendRest(ctx, l, sandbox)
	e.destroy(ctx, sandbox)
	e.sandboxGone(l)
	ticket.Leave()
	return nil
}

// restUnasked is rest for a lease that its caller did not ask to stop. A paused one that
// cannot be stopped is paused again, with its times as they were. The caller holds the
// turn.
func (e *Engine) restUnasked(ctx context.Context, l *lease, cause string) error {
	s := l.view()
	if s.State != cove.Paused {
		return e.rest(ctx, l, cause)
	}
	if !s.AutoResumes() { // its caller paused it
		cause = s.Cause
	}
	if err := e.thaw(ctx, l); err != nil {
		return err
	}
	err := e.rest(ctx, l, cause)
	if err == nil || l.view().State != cove.Running || cove.CodeOf(err) == cove.NotFound {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resumeTime)
	defer cancel()
	if perr := e.freeze(ctx, l, s.Cause); perr != nil {
		return errors.Join(err, perr)
	}
	l.change(func(r *cove.Session) { r.LastActivity, r.ExpiresAt = s.LastActivity, s.ExpiresAt })
	return errors.Join(err, e.save(ctx, l))
}

// sandboxGone forgets what a sandbox that was destroyed had on the disk.
func (e *Engine) sandboxGone(l *lease) {
	e.freeDisk(workspaceItem(l))
	e.freeKept(l)
}

func workspaceItem(l *lease) diskItem { return diskItem{diskWorkspace, string(l.id)} }

// saveWorkspace archives the files of a lease that is being stopped. On error the
// session runs on, and the error says so.
func (e *Engine) saveWorkspace(ctx context.Context, l *lease, sandbox cove.Sandbox) (cove.Bytes, error) {
	size, err := e.archive(ctx, sandbox, l.view())
	if err == nil {
		return size, nil
	}
	if cove.CodeOf(err) == cove.NotFound {
		if _, serr := sandbox.Files().Stat(ctx, cove.WorkspacePath); cove.CodeOf(serr) == cove.NotFound {
			e.broke(ctx, l)
			return 0, usable(l.view())
		}
	}
	return 0, unsaved(err)
}

// unsaved says that a session could not be stopped, and why.
func unsaved(err error) error {
	code := cove.CodeOf(err)
	if code == cove.NotFound {
		code = cove.Conflict // the session is there: a file was not, any more
	}
	out := cove.Wrap(code, err, "the session runs on, because its files could not be saved: %s", cove.MessageOf(err)).Remedy("try again")
	if was, ok := errors.AsType[*cove.Error](err); ok {
		for key, value := range was.Details {
			out = out.With(key, value)
		}
	}
	return out
}

// archive saves the workspace of a sandbox.
func (e *Engine) archive(ctx context.Context, sandbox cove.Sandbox, s *cove.Session) (size cove.Bytes, err error) {
	workspace := s.Spec.Workspace
	if s.Enlarged.Size > 0 {
		workspace = s.Enlarged
	}
	room := archiveRoom(ctx, sandbox, workspace)
	r, err := sandbox.Files().Archive(ctx, cove.WorkspacePath)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	saved := diskItem{diskArchive, string(s.ID)}
	src := &roomed{r: r, left: room, room: workspace.Size, counted: e.diskCounted(saved), grow: func(n cove.Bytes) error {
		return e.growDisk(ctx, s.Tenant, saved, n, false)
	}}
	size, err = e.archivesOf(s).Put(ctx, s.ID, src)
	if src.err != nil {
		return 0, src.err
	}
	return size, err
}

// restore puts an archived workspace into a fresh sandbox.
func (e *Engine) restore(ctx context.Context, sandbox cove.Sandbox, s *cove.Session) (err error) {
	r, err := e.archivesOf(s).Get(ctx, s.ID)
	if err != nil {
		return unreadable(err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	src := &reading{r: r}
	err = sandbox.Files().Unpack(ctx, cove.WorkspacePath, src)
	// The end of the files is not the end of the stream, where its checksum is
	// compared. What else went wrong with a damaged one does not matter.
	_, _ = io.Copy(io.Discard, src)
	if src.err != nil {
		return unreadable(src.err)
	}
	return err
}

// reading remembers what went wrong with a stream: not every reader of it says.
type reading struct {
	r   io.Reader
	err error
}

func (s *reading) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func unreadable(err error) error {
	remedy := cove.RemedyOf(err)
	if remedy == "" {
		remedy = "look at the archives folder"
	}
	return cove.Wrap(cove.Unavailable, err, "the files of the session cannot be read back: %s", cove.MessageOf(err)).
		Remedy("%s; the session stays stopped until then", remedy)
}

// wake gives a stopped lease a sandbox with its files again. The caller holds
// the turn.
func (e *Engine) wake(ctx context.Context, l *lease, onFull cove.OnFull, told func(int)) error {
	s := l.view()
	// Until the record says that the archive is not its files any more, what is written
	// could be lost with the sandbox, and nobody would be told.
	l.setResting(s.Cause)
	defer l.endRest()
	err := e.give(ctx, l, onFull, told)
	if err != nil {
		l.change(func(r *cove.Session) { r.State = cove.Stopped })
		return err
	}
	l.mu.Lock()
	l.rec.Cause, l.rec.Archived, l.rec.ArchiveSize = "", false, 0
	l.rec.ExpiresAt = time.Now().Add(l.rec.Spec.Idle)
	l.restarted = s.AutoResumes()
	l.mu.Unlock()
	e.freeDisk(diskItem{diskArchive, string(l.id)})
	if err := e.save(ctx, l); err != nil {
		return err
	}
	if !e.moves(s) { // the next stop replaces such an archive, and the end removes it
		e.removeArchive(ctx, s)
	}
	return nil
}

// removeArchive removes the files that were kept of a session.
func (e *Engine) removeArchive(ctx context.Context, s *cove.Session) {
	if err := e.archivesOf(s).Delete(ctx, s.ID); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "delete archive; the orphans task tries again", errAttr(err), sessionAttr(s.ID))
	}
}

// end ends a lease for a cause. The record says so before the sandbox goes, so
// that a crash in between leaves an orphan and never a lie. The caller holds
// the turn; ending twice is no error.
func (e *Engine) end(ctx context.Context, l *lease, cause string) error {
	ctx = context.WithoutCancel(ctx)
	was := l.view()
	if was.State == cove.Ended {
		return nil
	}
	now := time.Now()
	err := e.saveLast(ctx, l, func(s *cove.Session) { s.State, s.Cause, s.EndedAt = cove.Ended, cause, now })
	if err != nil {
		return err
	}
	e.dismantle(ctx, l, was.State == cove.Paused)
	if was.Archived || e.moves(was) {
		e.removeArchive(ctx, was)
	}
	e.forget(l)
	e.tellSessionEnd(ctx, l)
	return nil
}

// dismantle frees all that a lease has on this node which is marked as ended, but for
// its archive. Programs of a paused sandbox cannot be told to end: they end with it.
func (e *Engine) dismantle(ctx context.Context, l *lease, paused bool) {
	ctx = context.WithoutCancel(ctx)
	if !paused {
		l.endPrograms(ctx)
	}
	l.mu.Lock()
	sandbox, ticket := l.sandbox, l.ticket
	l.sandbox, l.ticket = nil, nil
	l.mu.Unlock()
	e.bookLast(l)
	e.spendRest(ctx, l, sandbox)
	e.destroy(ctx, sandbox)
	if paused {
		l.endPrograms(ctx)
	}
	e.sandboxGone(l)
	ticket.Leave()
	e.dropOutputs(l)
}

// archivesOf is where the files of a session are kept while it is stopped.
func (e *Engine) archivesOf(s *cove.Session) cove.Archives {
	if e.moves(s) {
		return e.cfg.Moving
	}
	return e.cfg.Archives
}
