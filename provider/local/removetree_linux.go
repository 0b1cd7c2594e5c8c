package local

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// removeTree deletes a directory that a sandbox wrote into, whatever it made of
// it: directories that nobody may enter, and more of them in one another than a
// path can name. Directories within directories are moved up to the top, so that
// no path becomes long and no descriptor is held for long. Nobody may use the
// tree meanwhile. What is not there is no error.
func removeTree(top string) error {
	root, err := os.OpenRoot(top)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	next := 0
	for {
		names, err := someNames(root, ".")
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return os.Remove(top)
		}
		for _, name := range names {
			if err := removeOne(root, name, &next); err != nil {
				return err
			}
		}
	}
}

// someNames returns a bounded number of names in a directory.
func someNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(1024)
	if len(names) == 0 && errors.Is(err, io.EOF) {
		return nil, nil
	}
	return names, err
}

// removeOne deletes a name at the top; of a directory, all but directories, which
// are at the top afterwards.
func removeOne(root *os.Root, name string, next *int) error {
	if err := root.Remove(name); err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return root.Remove(name)
	}
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	for {
		names, err := someNames(root, name)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return root.Remove(name)
		}
		for _, n := range names {
			inner := filepath.Join(name, n)
			info, err := root.Lstat(inner)
			if err != nil {
				return err
			}
			if !info.IsDir() {
				err = root.Remove(inner)
			} else {
				err = lift(root, inner, next)
			}
			if err != nil {
				return err
			}
		}
	}
}

// lift moves a directory to the top, under a name that is free there.
func lift(root *os.Root, inner string, next *int) error {
	// To move a directory, one must be able to write to it.
	if err := root.Chmod(inner, 0o700); err != nil {
		return err
	}
	for {
		*next++
		to := "." + strconv.Itoa(*next)
		if _, err := root.Lstat(to); errors.Is(err, os.ErrNotExist) {
			return root.Rename(inner, to)
		}
	}
}
