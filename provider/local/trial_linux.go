package local

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// trial is a layer over a workspace.
type trial struct {
	s    *shelf
	name string // of the layer
}

var _ cove.Trial = (*trial)(nil)

// inUse says why a layer cannot be put on or taken off.
func inUse(err error) error {
	if errors.Is(err, errBusy) {
		return cove.Wrap(cove.Conflict, err, "a program, a terminal or a watch uses the workspace").Remedy("end it first")
	}
	return err
}

// try puts a layer over the workspace.
func (s *shelf) try(ctx context.Context) (*trial, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if s.state.Below != "" {
		return nil, cove.Errorf(cove.Conflict, "there is a trial already").Remedy("commit or discard it first")
	}
	if err := s.take(ctx, stepTry); err != nil {
		return nil, inUse(err)
	}
	return &trial{s: s, name: s.state.Upper}, nil
}

// tried returns the trial that there is.
func (s *shelf) tried() (*trial, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if s.state.Below == "" {
		return nil, cove.Errorf(cove.NotFound, "there is no trial")
	}
	return &trial{s: s, name: s.state.Upper}, nil
}

// begin locks the shelf, if the trial goes on; unlock it with mu.
func (t *trial) begin() error {
	if err := t.s.begin(); err != nil {
		return err
	}
	if t.s.state.Below == "" || t.s.state.Upper != t.name {
		t.s.mu.Unlock()
		return cove.Errorf(cove.Conflict, "the trial has ended")
	}
	return nil
}

// Commit implements [cove.Trial].
func (t *trial) Commit(ctx context.Context) error {
	if err := t.begin(); err != nil {
		return err
	}
	defer t.s.mu.Unlock()
	return inUse(t.s.take(ctx, stepCommit))
}

// Discard implements [cove.Trial].
func (t *trial) Discard(ctx context.Context) error {
	if err := t.begin(); err != nil {
		return err
	}
	defer t.s.mu.Unlock()
	return inUse(t.s.take(ctx, stepDiscard))
}

// Changes implements [cove.Trial].
func (t *trial) Changes(ctx context.Context) iter.Seq2[cove.FileChange, error] {
	return func(yield func(cove.FileChange, error) bool) {
		if err := t.changes(ctx, func(c fence.Change) bool { return yield(fileChange(c), nil) }); err != nil {
			yield(cove.FileChange{}, err)
		}
	}
}

// changes has them told by who can see the layers.
func (t *trial) changes(ctx context.Context, yield func(fence.Change) bool) error {
	found, err := t.layers()
	if err != nil {
		return err
	}
	j := fence.Job{Kind: fence.JobChanges, Name: t.name, Stack: fence.Stack{Lower: named(found[1:])}}
	if t.s.maker != nil || !t.s.host.become {
		return t.readChanges(ctx, j, found, yield)
	}
	defer dropAll(found)
	err = t.s.host.tools().Changes(j, layerFiles(found), func(c *fence.Change) error {
		if !yield(*c) {
			return errEnough
		}
		return ctx.Err()
	})
	switch {
	case err == nil, errors.Is(err, errEnough):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return broken(err)
}

// errEnough ends a list that nobody reads any more.
var errEnough = errors.New("enough")

// readChanges reads them from somebody else, and lets go of the layers. What began
// goes on to its end even if nobody reads any more: it finds the pipe closed.
func (t *trial) readChanges(ctx context.Context, j fence.Job, found []layer, yield func(fence.Change) bool) error {
	r, w, err := changesPipe()
	if err != nil {
		dropAll(found)
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
	said := make(chan error, 1)
	go func() {
		defer dropAll(found)
		_, err := t.s.do(context.WithoutCancel(ctx), j, layerFiles(found, w)...)
		_ = unix.Close(w)
		said <- err
	}()
	in := bufio.NewReader(r)
	for err == nil {
		var c fence.Change
		if c, err = fence.ReadChange(in); err == nil && !yield(c) {
			stop()
			_ = r.Close()
			<-said
			return nil
		}
	}
	stop()
	_ = r.Close()
	job := <-said
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case job != nil:
		return broken(job)
	case !errors.Is(err, io.EOF):
		return cove.Wrap(cove.Internal, err, "what a trial changed cannot be read")
	}
	return nil
}

// layers holds the layers of the trial, its own first.
func (t *trial) layers() ([]layer, error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	defer t.s.mu.Unlock()
	return holdAll(append([]layer{t.s.top()}, t.s.lower...)), nil
}

func changesPipe() (r *os.File, w int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, cove.Wrap(cove.Exhausted, err, "the host has no descriptor left").Reason(cove.ReasonCapacity)
	}
	_ = unix.SetNonblock(ends[0], true) // so that the wait for it can be ended
	return os.NewFile(uintptr(ends[0]), "changes"), ends[1], nil
}

// fileChange is what a caller gets of a change.
func fileChange(c fence.Change) cove.FileChange {
	kinds := map[fence.ChangeKind]cove.ChangeKind{fence.Created: cove.Created, fence.Modified: cove.Modified, fence.Removed: cove.Removed}
	f := cove.FileChange{Kind: kinds[c.Kind], Path: path.Join(cove.WorkspacePath, c.Path)}
	if c.Kind != fence.Removed {
		f.Info = &cove.FileInfo{Path: f.Path, Size: cove.Bytes(c.Size), Mode: modeOf(c.Mode), Modified: time.Unix(0, c.Modified).UTC(), Link: c.Link, UID: -1, GID: -1}
	}
	return f
}

func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	mode |= map[uint32]fs.FileMode{
		unix.S_IFDIR: fs.ModeDir, unix.S_IFLNK: fs.ModeSymlink, unix.S_IFIFO: fs.ModeNamedPipe, unix.S_IFSOCK: fs.ModeSocket,
		unix.S_IFCHR: fs.ModeDevice | fs.ModeCharDevice, unix.S_IFBLK: fs.ModeDevice,
	}[m&unix.S_IFMT]
	for bit, is := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if m&bit != 0 {
			mode |= is
		}
	}
	return mode
}
