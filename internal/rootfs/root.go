package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// lazyRoot is a directory that is opened when it is there, and made when it is
// needed.
type lazyRoot struct {
	dir string

	mu     sync.Mutex
	opened *os.Root // guarded by mu
	closed bool     // guarded by mu
}

// get returns the directory, or fs.ErrNotExist if nothing was ever built.
func (l *lazyRoot) get() (*os.Root, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fs.ErrClosed
	}
	if l.opened != nil {
		return l.opened, nil
	}
	// The last that make makes.
	if _, err := os.Stat(filepath.Join(l.dir, stagingDir)); err != nil {
		return nil, err
	}
	var err error
	l.opened, err = os.OpenRoot(l.dir)
	return l.opened, err
}

// make returns the directory, with all that belongs in it.
func (l *lazyRoot) make() (*os.Root, error) {
	root, err := l.get()
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	for _, dir := range []string{namesDir, ownedDir, treesDir, stagingDir} {
		if err := os.MkdirAll(filepath.Join(l.dir, dir), 0o700); err != nil {
			return nil, err
		}
	}
	return l.get()
}

func (l *lazyRoot) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.opened == nil {
		return nil
	}
	return l.opened.Close()
}

// root is the directory for who has a lock or a stage in it, and so knows that it
// was opened.
func (s *Store) root() *os.Root {
	s.top.mu.Lock()
	defer s.top.mu.Unlock()
	return s.top.opened
}
