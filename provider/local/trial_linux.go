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
	"strings"
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

// changes reads them from who can see the layers.
func (t *trial) changes(ctx context.Context, yield func(fence.Change) bool) error {
	if t.s.maker == nil && t.s.host.become {
		return t.changesHere(ctx, yield)
	}
	job := func(found []layer) (fence.Job, []layer) {
		return fence.Job{Kind: fence.JobChanges, Name: t.name, Stack: fence.Stack{Lower: named(found[1:])}}, found
	}
	return t.told(ctx, job, func(r io.Reader) error {
		for in := bufio.NewReader(r); ; {
			c, err := fence.ReadChange(in)
			if err != nil {
				return err
			}
			if !yield(c) {
				return errEnough
			}
		}
	})
}

// changesHere finds them, where we can see the layers ourselves.
func (t *trial) changesHere(ctx context.Context, yield func(fence.Change) bool) error {
	found, err := t.layers()
	if err != nil {
		return err
	}
	defer dropAll(found)
	j := fence.Job{Kind: fence.JobChanges, Name: t.name, Stack: fence.Stack{Lower: named(found[1:])}}
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

// Before implements [cove.Trial].
func (t *trial) Before(ctx context.Context, name string) (content []byte, err error) {
	most := int64(cove.MaxTrialFile)
	job := func(found []layer) (fence.Job, []layer) {
		below := found[1:]
		return fence.Job{
			Kind: fence.JobBefore, Path: strings.TrimPrefix(name, cove.WorkspacePath+"/"), Bounds: fence.Bounds{Size: most}, Stack: fence.Stack{Lower: named(below)},
		}, below
	}
	err = t.told(ctx, job, func(r io.Reader) error {
		content, err = io.ReadAll(io.LimitReader(r, most+1))
		if err == nil {
			err = io.EOF
		}
		return err
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		err = cove.Wrap(cove.NotFound, err, "there was no such file before the trial")
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENAMETOOLONG):
		err = cove.InvalidField("path", "was no regular file before the trial")
	case errors.Is(err, unix.EFBIG):
		err = cove.InvalidField("path", "had more than %d bytes before the trial, which is the most that is shown", most).Reason(cove.ReasonFileTooLarge)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// errEnough ends what is read before its end.
var errEnough = errors.New("no more is wanted")

// told has a job done by who can see the layers, and hands on what it writes. What
// began goes on to its end even if nobody reads any more: it finds the pipe closed.
// read returns io.EOF at the end of what there is.
func (t *trial) told(ctx context.Context, job func([]layer) (fence.Job, []layer), read func(io.Reader) error) error {
	r, w, found, err := t.look()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
	said := make(chan error, 1)
	go func() {
		defer dropAll(found)
		j, layers := job(found)
		_, err := t.s.do(context.WithoutCancel(ctx), j, layerFiles(layers, w)...)
		_ = unix.Close(w)
		said <- err
	}()
	err = read(r)
	stop()
	_ = r.Close()
	fault := <-said
	switch {
	case errors.Is(err, errEnough):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case fault != nil:
		return broken(fault)
	case !errors.Is(err, io.EOF):
		return cove.Wrap(cove.Internal, err, "what a trial changed cannot be read")
	}
	return nil
}

// look holds the layers of the trial, and opens a pipe.
func (t *trial) look() (r *os.File, w int, found []layer, err error) {
	if found, err = t.layers(); err != nil {
		return nil, -1, nil, err
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		dropAll(found)
		return nil, -1, nil, cove.Wrap(cove.Exhausted, err, "the host has no descriptor left").Reason(cove.ReasonCapacity)
	}
	_ = unix.SetNonblock(ends[0], true) // so that the wait for it can be ended
	return os.NewFile(uintptr(ends[0]), "changes"), ends[1], found, nil
}

// layers holds the layers of the trial, its own first.
func (t *trial) layers() ([]layer, error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	defer t.s.mu.Unlock()
	return holdAll(append([]layer{t.s.top()}, t.s.lower...)), nil
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
