package fence

import (
	"errors"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// merger puts an upper layer into the one below it, by moving.
type merger struct {
	t            Tools
	store        int
	upper, lower int
	bare         bool // nothing is below the lower layer
	trash        []string
}

// merge puts what a layer changes into another one of its store. Nobody else has
// either. At each moment a file is there as it was or as it will be, and what was
// cut short can be done again from the start.
func (t Tools) merge(store int, name, to string, bare bool) error {
	upper, err := openDir(store, name)
	if errors.Is(err, unix.ENOENT) {
		return nil // it was done before
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(upper) }()
	lower, err := openDir(store, to)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(lower) }()
	m := &merger{t: t, store: store, upper: upper, lower: lower, bare: bare}
	var done []string
	for left := []string{"."}; len(left) > 0; {
		dir := left[len(left)-1]
		dirs, err := m.directory(dir)
		if err != nil {
			return err
		}
		done = append(done, dir)
		left = append(left[:len(left)-1], dirs...)
	}
	// Moving files changed the times of directories; those below come last.
	for i := range done {
		if err := m.resemble(done[len(done)-1-i]); err != nil {
			return err
		}
	}
	for _, old := range append(m.trash, name) {
		if err := erase(store, old); err != nil {
			return err
		}
	}
	if err := eraseWork(store, name); err != nil {
		return err
	}
	forgive(store, name)
	return nil
}

// pair opens a directory of both layers.
func (m *merger) pair(dir string) (up, low int, err error) {
	if up, err = below(m.upper, dir, unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		return -1, -1, err
	}
	if low, err = below(m.lower, dir, unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		_ = unix.Close(up)
		return -1, -1, err
	}
	return up, low, nil
}

// resemble gives a directory of the lower layer what the upper one says of it.
func (m *merger) resemble(dir string) error {
	up, low, err := m.pair(dir)
	if err != nil {
		return err
	}
	defer closeAll([]int{up, low})
	var st unix.Stat_t
	if err := unix.Fstat(up, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	return likeness(up, low, int(st.Uid), m.t.Become)
}

// directory merges one directory and returns those in it that are in both.
func (m *merger) directory(dir string) (both []string, err error) {
	up, low, err := m.pair(dir)
	if err != nil {
		return nil, err
	}
	defer closeAll([]int{up, low})
	list, err := names(up)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		again, err := m.one(up, low, n)
		if err != nil {
			return nil, &os.PathError{Op: "merge", Path: path.Join(dir, n), Err: err}
		}
		if name := path.Join(dir, n); again {
			if len(name) > longest {
				return nil, tooLong("merge", name)
			}
			both = append(both, name)
		}
	}
	return both, nil
}

// one merges what has a name, and reports whether both are directories.
func (m *merger) one(up, low int, n string) (again bool, err error) {
	now, ok, err := look(up, n)
	if err != nil || !ok {
		return false, err
	}
	was, exists, err := look(low, n)
	if err != nil {
		return false, err
	}
	if isDir(&now) && exists && isDir(&was) {
		opaque, err := m.t.isOpaque(up, n)
		if err != nil || !opaque {
			return err == nil, err
		}
	}
	gone := isWhiteout(&now) && m.bare
	if !gone && m.bare {
		if err := m.strip(up, n, &now); err != nil {
			return false, err
		}
	}
	switch {
	case gone && !exists:
		return false, unix.Unlinkat(up, n, 0)
	case exists && (gone || isDir(&was) || isDir(&now)):
		// In one step; what was there is erased in its new place.
		if err := unix.Renameat2(up, n, low, n, unix.RENAME_EXCHANGE); err != nil {
			return false, err
		}
		if gone {
			if err := unix.Unlinkat(low, n, 0); err != nil {
				return false, err
			}
		}
		name, err := trash(m.store, up, n)
		m.trash = append(m.trash, name)
		return false, err
	}
	return false, unix.Renameat(up, n, low, n)
}

// strip removes what an overlay left in a tree that no overlay will be under.
func (m *merger) strip(dir int, name string, st *unix.Stat_t) error {
	if kindOf(st) != unix.S_IFREG && !isDir(st) {
		return nil
	}
	root, err := below(dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(root) }()
	if err := m.unnote(root); err != nil || !isDir(st) {
		return err
	}
	for left := []string{"."}; len(left) > 0; {
		at := left[len(left)-1]
		dirs, err := m.stripDirectory(root, at)
		if err != nil {
			return err
		}
		left = append(left[:len(left)-1], dirs...)
	}
	return nil
}

func (m *merger) stripDirectory(root int, at string) (dirs []string, err error) {
	fd, err := below(root, at, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	var before unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	list, err := names(fd)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		isDir, err := m.stripOne(fd, n)
		if err != nil {
			return nil, err
		}
		if name := path.Join(at, n); isDir {
			if len(name) > longest {
				return nil, tooLong("merge", name)
			}
			dirs = append(dirs, name)
		}
	}
	return dirs, setTimes(fd, "", &before)
}

func (m *merger) stripOne(dir int, n string) (isDirectory bool, err error) {
	st, ok, err := look(dir, n)
	if err != nil || !ok {
		return false, err
	}
	if isWhiteout(&st) {
		return false, unix.Unlinkat(dir, n, 0)
	}
	if kindOf(&st) != unix.S_IFREG && !isDir(&st) {
		return false, nil
	}
	fd, err := below(dir, n, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	return isDir(&st), m.unnote(fd)
}

// unnote removes what an overlay noted with a file.
func (m *merger) unnote(fd int) error {
	_, listed, err := attributes(fd)
	if err != nil {
		return err
	}
	for _, name := range listed {
		if !strings.HasPrefix(name, m.t.notes()) {
			continue
		}
		if err := unix.Fremovexattr(fd, name); err != nil && !errors.Is(err, unix.ENODATA) {
			return os.NewSyscallError("fremovexattr", err)
		}
	}
	return nil
}
