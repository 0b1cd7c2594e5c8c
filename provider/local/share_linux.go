package local

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// looked is when a shelf measured what it shares, and what its own store held then.
type looked struct {
	at          time.Time
	size, files int64
}

// More shared files than manyShared are not measured again before lookRest has passed.
const (
	manyShared = 10_000
	lookRest   = time.Second
)

// room are the bounds of the own store: what the files of other stores leave of those of
// the workspace, and directories that are no files of it. The kernel knows no store
// without a page. The caller holds mu.
func (s *shelf) room(extra int64) fence.Bounds {
	return fence.Bounds{Size: max(1, s.bounds.Size-s.shared.Size), Files: s.bounds.Files - s.shared.Files + extra}
}

// resize gives the own store its bounds. The caller holds mu.
func (s *shelf) resize(ctx context.Context) error {
	if s.bounds.Size == 0 {
		return nil
	}
	_, err := s.do(ctx, fence.Job{Kind: fence.JobErase, Bounds: s.room(s.state.Extra)}, s.own.fd)
	return broken(err)
}

// look notes what the own store holds at a measurement. The caller holds mu.
func (s *shelf) look() (err error) {
	s.looked.size, s.looked.files, err = s.own.used()
	s.looked.at = time.Now()
	return err
}

// regain gives the sandbox the room of shared files that it removed or replaced, if it
// has less than half of its room left. Whoever is about to write calls it. Where it
// fails, the room stays as small as it was.
func (s *shelf) regain(ctx context.Context) {
	if s == nil || !s.mu.TryLock() { // a snapshot measures, too
		return
	}
	defer s.mu.Unlock()
	if s.closed || s.shared == (fence.Bounds{}) {
		return
	}
	size, files, err := s.own.used()
	room := s.room(s.state.Extra)
	wide := room.Size-size >= s.bounds.Size/2 && room.Files-files >= s.bounds.Files/2
	same := size == s.looked.size && files == s.looked.files // whatever hides a file takes a file
	soon := s.shared.Files > manyShared && time.Since(s.looked.at) < lookRest
	if err == nil && !wide && !same && !soon {
		_ = s.measure(ctx)
	}
}

// measure finds out what is still to be seen of the files of other stores, and gives
// their room to the own one. What a trial hides may come back, and counts. The caller
// holds mu.
func (s *shelf) measure(ctx context.Context) error {
	if s.shared == (fence.Bounds{}) {
		return nil
	}
	if err := s.look(); err != nil { // before: what changes meanwhile is seen the next time
		return err
	}
	layers, over := s.lower, 0
	if s.state.Below == "" {
		layers = append([]layer{s.top()}, layers...)
	}
	for over < len(layers) && layers[over].store == s.own {
		over++
	}
	shared, err := s.crew.measure(ctx, layers, over)
	if err != nil || shared == s.shared {
		return err
	}
	old := s.shared
	s.shared = fence.Bounds{Size: min(old.Size, shared.Size), Files: min(old.Files, shared.Files)}
	if err := s.resize(ctx); err != nil {
		s.shared = old
		return err
	}
	return s.write(ctx, "")
}

// tooSmall says that a workspace cannot begin with files that take more than its bounds.
func tooSmall(bounds, files fence.Bounds) error {
	field := "workspace.size_mb"
	if files.Size <= bounds.Size {
		field = "workspace.files"
	}
	return cove.Errorf(cove.Exhausted, "%s: the session would begin with %s in %d files, and its workspace takes %s in %d files",
		field, cove.Bytes(files.Size), files.Files, cove.Bytes(bounds.Size), bounds.Files).
		Reason(cove.ReasonWorkspaceFull).With("field", field).Remedy("ask for a larger workspace")
}

// unfit explains why a workspace could not be filled with files. The caller holds mu.
func (s *shelf) unfit(err error) error {
	if !errors.Is(err, unix.ENOSPC) {
		return broken(err)
	}
	return cove.Wrap(cove.Exhausted, err, "workspace.size_mb: the session would begin with more than the %s in %d files that its workspace takes",
		cove.Bytes(s.bounds.Size), s.bounds.Files).
		Reason(cove.ReasonWorkspaceFull).With("field", "workspace.size_mb").Remedy("ask for a larger workspace, with more bytes and more files")
}
