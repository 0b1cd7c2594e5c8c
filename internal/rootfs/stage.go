package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/flock"
)

// Stage is a place to build one tree in.
type Stage struct {
	// Dir is a directory for whatever the builder needs beside the tree.
	Dir string
	// Tree is the tree, empty at first.
	Tree *os.Root

	store *Store
	name  string
	alive *os.File
}

// Stage makes a place to build in, and removes those of builders that died. The
// caller closes it, also after [Store.Put].
func (s *Store) Stage() (*Stage, error) {
	if _, err := s.top.make(); err != nil {
		return nil, fault(err, "the templates in "+s.cfg.Dir)
	}
	s.clear()
	st := &Stage{store: s, name: string(cove.NewID())}
	st.Dir = filepath.Join(s.cfg.Dir, stagingDir, st.name)
	if err := st.open(); err != nil {
		return nil, errors.Join(fault(err, "the templates in "+s.cfg.Dir), st.Close())
	}
	return st, nil
}

func (st *Stage) open() error {
	root, dir := st.store.root(), path.Join(stagingDir, st.name)
	// Made under a name that nobody clears, and locked before it gets its own.
	draft := dir + ".draft"
	if err := root.Mkdir(draft, 0o700); err != nil {
		return err
	}
	var err error
	if st.alive, err = root.Open(draft); err != nil {
		return err
	}
	if ok, err := flock.Try(st.alive, flock.Exclusive); !ok {
		return errors.Join(errors.New("a new directory is locked"), err)
	}
	if err := root.Rename(draft, dir); err != nil {
		return err
	}
	if err := root.Mkdir(path.Join(dir, treeDir), 0o700); err != nil {
		return err
	}
	if err := root.Chmod(path.Join(dir, treeDir), 0o755); err != nil {
		return err
	}
	st.Tree, err = root.OpenRoot(path.Join(dir, treeDir))
	return err
}

// Close removes what was not put into the store.
func (st *Stage) Close() error {
	var errs []error
	if st.Tree != nil {
		errs = append(errs, st.Tree.Close())
	}
	errs = append(errs, st.store.root().RemoveAll(path.Join(stagingDir, st.name)))
	if st.alive != nil {
		errs = append(errs, st.alive.Close())
	}
	return errors.Join(errs...)
}

// draftTime is after how long a draft is nobody's: each lasts for a few calls.
const draftTime = time.Hour

// clear removes what builders left that died. What cannot be removed is tried
// again by the next.
func (s *Store) clear() {
	entries, _ := fs.ReadDir(s.root().FS(), stagingDir)
	for _, e := range entries {
		name := path.Join(stagingDir, e.Name())
		if !cove.ID(e.Name()).Valid() {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > draftTime {
				_ = s.root().RemoveAll(name)
			}
			continue
		}
		f, err := s.root().Open(name)
		if err != nil {
			continue
		}
		if free, _ := flock.Try(f, flock.Exclusive); free {
			_ = s.root().RemoveAll(name)
		}
		_ = f.Close()
	}
}
