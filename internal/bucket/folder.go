package bucket

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
)

// shared is objects in a folder that nodes share, such as one of NFS.
type shared struct {
	path string
	root *os.Root
}

// openFolder makes a folder, unless it is there; the one above it must exist.
func openFolder(dir string) (*os.Root, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if info, e := os.Stat(dir); err != nil && e == nil && !info.IsDir() {
		err = syscall.ENOTDIR // which OpenRoot says in words of its own
	}
	return root, err
}

func openShared(dir string) (*shared, error) {
	root, err := openFolder(dir)
	if err != nil {
		return nil, fault(dir, err)
	}
	for _, folder := range []string{blobs, sessions, drafts} {
		if err := root.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(fault(dir, err), root.Close())
		}
	}
	return &shared{dir, root}, nil
}

func (s *shared) close() error  { return s.root.Close() }
func (s *shared) about() string { return s.path }

// most is no bound: what a workspace may hold, and the disk, are.
func (s *shared) most() int64 { return math.MaxInt64 }

// draft makes a file that has no name that means anything yet.
func (s *shared) draft() (*os.File, string, error) {
	name := drafts + "/" + string(cove.NewID())
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return f, name, err
}

func (s *shared) put(ctx context.Context, name string, c content) (err error) {
	f, draft, err := s.draft()
	if err != nil {
		return fault(s.path, err)
	}
	defer func() {
		// After the rename there is no draft, and what Remove says is no news.
		if e := s.root.Remove(draft); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fault(s.path, e))
		}
	}()
	_, err = io.Copy(f, &source{ctx: ctx, r: c.reader()})
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fault(s.path, err)
	}
	return fault(s.path, s.publish(draft, name))
}

// publish gives a finished draft its name, for good.
func (s *shared) publish(draft, name string) error {
	if err := s.root.Rename(draft, name); err != nil {
		return err
	}
	dir, err := s.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (s *shared) get(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, fault(s.path, err)
	}
	// A pipe that somebody put there must not make us wait.
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, s.missing(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errStranger
	}
	if err != nil {
		return nil, 0, errors.Join(fault(s.path, err), f.Close())
	}
	return f, info.Size(), nil
}

var errStranger = errors.New("not a regular file")

func (s *shared) stat(ctx context.Context, name string) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fault(s.path, err)
	}
	info, err := s.root.Lstat(name)
	if err != nil {
		return 0, s.missing(err)
	}
	if !info.Mode().IsRegular() {
		return 0, fault(s.path, errStranger)
	}
	return info.Size(), nil
}

func (s *shared) missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errMissing
	}
	return fault(s.path, err)
}

func (s *shared) delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return fault(s.path, err)
	}
	if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault(s.path, err)
	}
	return nil
}

func (s *shared) list(ctx context.Context, folder string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		names, err := s.names(ctx, folder)
		if err != nil {
			yield(entry{}, fault(s.path, err))
			return
		}
		for _, name := range names {
			info, err := s.root.Lstat(folder + "/" + name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed meanwhile
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(entry{}, fault(s.path, err))
				return
			}
			if info.Mode().IsRegular() && !yield(entry{name, info.ModTime()}, nil) {
				return
			}
		}
	}
}

func (s *shared) names(ctx context.Context, folder string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.root.Open(folder)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, f.Close())
}

// now is when the file server says that a file was made now.
func (s *shared) now(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fault(s.path, err)
	}
	f, name, err := s.draft()
	if err != nil {
		return time.Time{}, fault(s.path, err)
	}
	// With a byte in it: some servers leave the time of an empty file to the client.
	_, werr := f.Write([]byte{0})
	serr, cerr := f.Sync(), f.Close()
	info, err := s.root.Stat(name)
	if err := errors.Join(err, werr, serr, cerr, s.root.Remove(name)); err != nil {
		return time.Time{}, fault(s.path, err)
	}
	return info.ModTime(), nil
}
