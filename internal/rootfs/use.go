package rootfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/flock"
)

// Use returns a template that is ready, and the directory of its tree, "" for the
// host's own. The tree was checked, and stays until the store is closed, whatever
// happens to the name.
func (s *Store) Use(ctx context.Context, name string) (Manifest, string, error) {
	m, err := s.take(ctx, name)
	if err == nil && m.Kind != KindHost {
		err = s.check(ctx, m)
	}
	if err != nil {
		return m, "", fault(err, "the template "+name)
	}
	if m.Kind == KindHost {
		return m, "", nil
	}
	return m, filepath.Join(s.cfg.Dir, filepath.FromSlash(treeOf(m.Digest))), nil
}

// take looks a template up and says that it is in use, so that nobody removes it
// in between.
func (s *Store) take(ctx context.Context, name string) (Manifest, error) {
	e, done, err := s.lookReady(name)
	if done || err != nil {
		return e.Manifest, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return Manifest{}, err
	}
	defer unlock()
	e, done, err = s.lookReady(name)
	if done || err != nil {
		return e.Manifest, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.Manifest, s.hold(e.Digest)
}

// lookReady looks a template up that can be used; done says that nothing more is
// to do, since it has no tree or that is this process's already.
func (s *Store) lookReady(name string) (e Entry, done bool, err error) {
	e, err = s.Look(name)
	if err != nil {
		return e, true, err
	}
	if !e.Ready {
		return e, true, cove.Errorf(cove.Unavailable, "template %s is not ready: %s", name, e.Why).Remedy("%s", e.Remedy)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return e, e.Kind == KindHost || s.held[e.Digest] != nil, nil
}

// hold marks a tree as used by this process. The caller has mu.
func (s *Store) hold(digest string) error {
	if s.held == nil {
		return fs.ErrClosed
	}
	if s.held[digest] != nil {
		return nil
	}
	f, err := s.root().OpenFile(useOf(digest), os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if ok, err := flock.Try(f, flock.Shared); !ok {
		return errors.Join(errors.New("the tree is being removed"), err, f.Close())
	}
	s.held[digest] = f
	return nil
}

// Inherit takes over from an earlier process: where its sandboxes may live, all
// trees that were used before are used by this one, and otherwise those go that no
// name leads to.
func (s *Store) Inherit(ctx context.Context) error {
	if _, err := s.top.get(); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return fault(err, "the templates in "+s.cfg.Dir)
	}
	defer unlock()
	if s.cfg.Held == nil || !s.cfg.Held() {
		_, err := s.sweep()
		return fault(err, "the templates in "+s.cfg.Dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	digests, err := s.trees()
	for _, digest := range digests {
		if _, used := s.root().Lstat(useOf(digest)); used == nil {
			err = errors.Join(err, s.hold(digest))
		}
	}
	return fault(err, "the templates in "+s.cfg.Dir)
}

// inUse reports whether a process handed a tree out, or one did whose sandboxes
// may still live.
func (s *Store) inUse(digest string) bool {
	f, err := s.root().Open(useOf(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	free, err := flock.Try(f, flock.Exclusive)
	return err != nil || !free || s.cfg.Held != nil && s.cfg.Held()
}

// check compares the seal of a tree, the first time that it is used and when that
// is some time ago.
func (s *Store) check(ctx context.Context, m Manifest) error {
	s.checking.Lock()
	defer s.checking.Unlock()
	if at, ok := s.checked[m.Digest]; ok && time.Since(at) < s.cfg.Recheck {
		return nil
	}
	delete(s.checked, m.Digest)
	seal, err := s.seal(ctx, m.Digest)
	if err != nil {
		return changed(m.Name, err)
	}
	if seal != m.Seal {
		// A copy of the whole directory has other numbers and the same content.
		if err := s.compare(ctx, m); err != nil {
			return err
		}
		m.Seal = seal
		if err := s.reseal(ctx, m); err != nil {
			return err
		}
	}
	s.checked[m.Digest] = time.Now()
	return nil
}

// reseal writes a new seal down, if the name still stands for the same.
func (s *Store) reseal(ctx context.Context, m Manifest) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := s.read(m.Name)
	if err != nil || now.Digest != m.Digest {
		return nil // whoever replaced or removed it did the rest
	}
	return s.write(m)
}

// Verify reads all files of a template and compares them with what was built.
func (s *Store) Verify(ctx context.Context, name string) (Entry, error) {
	e, err := s.Look(name)
	if err == nil && e.Kind != KindHost && e.Digest != "" {
		err = s.compare(ctx, e.Manifest)
	}
	return e, fault(err, "the template "+name)
}

func (s *Store) compare(ctx context.Context, m Manifest) error {
	tree, err := s.root().OpenRoot(treeOf(m.Digest))
	if err != nil {
		return changed(m.Name, err)
	}
	defer func() { _ = tree.Close() }()
	found, err := digestOf(ctx, tree)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil || found.digest != m.Digest {
		return changed(m.Name, err)
	}
	return nil
}

func changed(name string, cause error) error {
	return cove.Wrap(cove.Unavailable, cause, "the files of template %s were changed on disk after it was built", name).Remedy("build it again: cove template build %s", name)
}

// Remove takes a name away. Its files go with it, or stay, as kept says, until
// those that use them have ended. What is builtin is removed only as far as it
// was built.
func (s *Store) Remove(ctx context.Context, name string) (kept bool, err error) {
	kept, err = s.remove(ctx, name)
	return kept, fault(err, "the template "+name)
}

func (s *Store) remove(ctx context.Context, name string) (kept bool, err error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	m, _ := s.read(name) // also what cannot be read can be removed
	if err = s.leave(name, ""); err == nil {
		err = s.root().Remove(manifestOf(name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, ok := s.builtin(name); ok {
			return false, cove.Errorf(cove.Conflict, "template %s was not built here: nothing can be removed", name)
		}
		return false, cove.Errorf(cove.NotFound, "there is no template %s", name).Remedy("cove template ls lists those that are there")
	}
	if err != nil {
		return false, err
	}
	left, err := s.sweep()
	return left[m.Digest], err
}

// sweep removes the trees that no name leads to and that nobody uses, and returns
// those that it left. The caller has the lock.
func (s *Store) sweep() (left map[string]bool, err error) {
	named := map[string]bool{}
	names, err := s.built()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if m, err := s.read(name); err == nil {
			named[m.Digest] = true
		}
	}
	digests, err := s.trees()
	left = map[string]bool{}
	for _, digest := range digests {
		switch {
		case named[digest]:
		case s.inUse(digest):
			left[digest] = true
		default:
			err = errors.Join(err, s.drop(digest))
		}
	}
	return left, errors.Join(err, s.forgetLeft(left))
}

// trees returns the digests of all trees.
func (s *Store) trees() (digests []string, err error) {
	files, err := fs.ReadDir(s.root().FS(), treesDir)
	for _, f := range files {
		if goodDigest(f.Name()) {
			digests = append(digests, f.Name())
		}
	}
	return digests, err
}

// drop removes a tree: out of sight first, so that no half of one has its name.
func (s *Store) drop(digest string) error {
	grave := path.Join(stagingDir, string(cove.NewID()))
	if err := s.root().Rename(treeOf(digest), grave); err != nil {
		return err
	}
	err := s.root().RemoveAll(grave)
	if e := s.root().Remove(useOf(digest)); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}
