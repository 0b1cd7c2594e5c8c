package fake

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"sync/atomic"

	"github.com/cove-sandbox/cove"
)

// Where a trial keeps things, beside the tree of its sandbox. A trial is open
// while belowDir is there: the workspace as it was.
const (
	belowDir = "below"
	draftDir = "below.new"
	goneDir  = "gone"
	workDir  = treeDir + "/workspace"
)

type trying struct {
	cove.Sandbox

	s *sandbox
}

var (
	_ cove.Trier       = trying{}
	_ cove.TrialKeeper = trying{}
	_ cove.Trial       = (*layer)(nil)
)

func (l trying) Unwrap() cove.Sandbox { return l.Sandbox }

// Try implements [cove.Trier]. The workspace is copied away at once: whatever
// changes in it from now on is the layer.
func (l trying) Try(ctx context.Context) (cove.Trial, error) {
	if err := l.s.ready(ctx, "try"); err != nil {
		return nil, err
	}
	err := l.s.tree.do(func() error {
		if l.s.onTrial() {
			return cove.Errorf(cove.Conflict, "a trial is open already; commit or discard it first")
		}
		if err := l.s.machine.idle(); err != nil {
			return err
		}
		return l.s.inBox(setAside)
	})
	if err != nil {
		return nil, fileError(cove.WorkspacePath, err)
	}
	return &layer{s: l.s}, nil
}

// Tried implements [cove.TrialKeeper].
func (l trying) Tried(ctx context.Context) (cove.Trial, error) {
	if err := l.s.ready(ctx, "tried"); err != nil {
		return nil, err
	}
	if !l.s.onTrial() {
		return nil, cove.Errorf(cove.NotFound, "no trial is open")
	}
	return &layer{s: l.s}, nil
}

func (s *sandbox) onTrial() bool {
	_, err := s.provider.root.Lstat(string(s.id) + "/" + belowDir)
	return err == nil
}

// inBox runs fn on the directory of the sandbox.
func (s *sandbox) inBox(fn func(box *os.Root) error) error {
	box, err := s.provider.root.OpenRoot(string(s.id))
	if err != nil {
		return err
	}
	defer func() { _ = box.Close() }()
	return fn(box)
}

// idle is Conflict while a program runs.
func (m *machine) idle() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.procs); n > 0 {
		return cove.Errorf(cove.Conflict, "%d programs run in the sandbox; end them first", n)
	}
	return nil
}

// setAside copies the workspace out of the tree.
func setAside(box *os.Root) error {
	err := errors.Join(box.RemoveAll(draftDir), box.RemoveAll(goneDir))
	if err != nil {
		return err
	}
	c := cloner{root: box, links: map[inode]string{}}
	if err := c.clone(draftDir, workDir); err != nil {
		return after(err, box.RemoveAll(draftDir))
	}
	return box.Rename(draftDir, belowDir)
}

// mend finishes a discard that a crash cut short between its two steps.
func mend(box *os.Root) error {
	_, err := box.Lstat(workDir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = box.Rename(belowDir, workDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // whoever opens the tree says what is missing
	}
	return err
}

// layer is an open trial.
type layer struct {
	s     *sandbox
	ended atomic.Bool
}

// Changes implements [cove.Trial].
func (l *layer) Changes(ctx context.Context) iter.Seq2[cove.FileChange, error] {
	return func(yield func(cove.FileChange, error) bool) {
		list, err := l.changes(ctx)
		if err != nil {
			yield(cove.FileChange{}, err)
			return
		}
		for _, c := range list {
			if err := ctx.Err(); err != nil {
				yield(cove.FileChange{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Before implements [cove.Trial].
func (l *layer) Before(ctx context.Context, name string) (content []byte, err error) {
	err = l.do(ctx, "before", func(box *os.Root) error {
		content, err = readOld(box, belowDir+strings.TrimPrefix(name, cove.WorkspacePath))
		return err
	})
	return content, err
}

// readOld reads a regular file of the workspace as it was.
func readOld(box *os.Root, name string) ([]byte, error) {
	none := cove.Errorf(cove.NotFound, "there was no such file before the trial")
	for dir := path.Dir(name); dir != belowDir; dir = path.Dir(dir) {
		if fi, err := box.Lstat(dir); err != nil || !fi.IsDir() {
			return nil, none // links are not followed
		}
	}
	fi, err := box.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, none
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, cove.InvalidField("path", "was no regular file before the trial")
	case fi.Size() > int64(cove.MaxTrialFile):
		return nil, cove.InvalidField("path", "had %d bytes before the trial; the most that is shown is %d", fi.Size(), int64(cove.MaxTrialFile)).Reason(cove.ReasonFileTooLarge)
	}
	return box.ReadFile(name)
}

func (l *layer) changes(ctx context.Context) (list []cove.FileChange, err error) {
	err = l.do(ctx, "changes", func(box *os.Root) error {
		d := differ{t: l.s.tree, box: box}
		err := d.compare("")
		list = d.list
		return err
	})
	return list, err
}

// do runs fn on the directory of the sandbox with the tree held still, while the
// trial is open.
func (l *layer) do(ctx context.Context, step string, fn func(box *os.Root) error) error {
	if err := l.s.ready(ctx, step); err != nil {
		return err
	}
	return fileError(cove.WorkspacePath, l.s.tree.do(func() error {
		if l.ended.Load() || !l.s.onTrial() {
			return cove.Errorf(cove.NotFound, "the trial has ended")
		}
		return l.s.inBox(fn)
	}))
}

// Commit implements [cove.Trial]. The workspace has the changes already.
func (l *layer) Commit(ctx context.Context) error {
	return l.end(ctx, "commit", func(box *os.Root) error {
		return box.Rename(belowDir, goneDir)
	})
}

// Discard implements [cove.Trial].
func (l *layer) Discard(ctx context.Context) error {
	return l.end(ctx, "discard", func(box *os.Root) error {
		t := l.s.tree
		was, had, err := t.tally(workDir, box)
		if err != nil {
			return err
		}
		is, has, err := t.tally(belowDir, box)
		if err != nil {
			return err
		}
		if err := box.Rename(workDir, goneDir); err != nil {
			return err
		}
		if err := box.Rename(belowDir, workDir); err != nil {
			return after(err, box.Rename(goneDir, workDir))
		}
		t.work.give(was-is, had-has)
		t.startle(cove.WorkspacePath)
		return nil
	})
}

func (l *layer) end(ctx context.Context, step string, fn func(box *os.Root) error) error {
	return l.do(ctx, step, func(box *os.Root) error {
		if err := l.s.machine.idle(); err != nil {
			return err
		}
		if err := box.RemoveAll(goneDir); err != nil {
			return err
		}
		if err := fn(box); err != nil {
			return err
		}
		l.ended.Store(true)
		return box.RemoveAll(goneDir)
	})
}

// tally adds up what is below a directory as the ledger does: a file with many
// names once.
func (t *tree) tally(dir string, box *os.Root) (bytes, files int64, err error) {
	seen := map[inode]bool{}
	err = fs.WalkDir(box.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		files++
		if id, _ := inodeOf(fi); !seen[id] {
			seen[id] = true
			bytes += weight(fi)
		}
		return nil
	})
	return bytes, files, err
}

// startle tells those who watch something in a directory to look for themselves.
func (t *tree) startle(dir string) {
	for w := range t.watches {
		if within(dir, w.dir) || within(w.dir, dir) {
			w.lose()
		}
	}
}
