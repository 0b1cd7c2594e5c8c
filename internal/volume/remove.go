package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// Remove implements cove.Folders. Nobody may have the folder mounted. When it is cut
// short, some of the files are left, and the next one goes on.
func (d *Dir) Remove(ctx context.Context, id cove.ID) error {
	name, err := begin(ctx, id)
	if err != nil {
		return err
	}
	_ = d.root.Chmod(name, 0o700) // a sandbox may have closed it; what follows says if we cannot
	top, err := d.root.OpenRoot(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(empty(ctx, top), top.Close())
	}
	if err == nil {
		err = d.root.Remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault(d.path, err)
	}
	return nil
}

// empty removes all that is in a folder. Folders that are not empty are brought up
// to its top first, one after the other: somebody may have put so many into one
// another that no path is long enough for the last, nor enough files can be open.
func empty(ctx context.Context, top *os.Root) error {
	for {
		names, err := some(ctx, top, ".")
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := drop(top, name); !isFolder(top, name, err) {
				if err != nil {
					return err
				}
				continue
			}
			if err := dissolve(ctx, top, name); err != nil {
				return err
			}
		}
	}
}

// dissolve removes a folder at the top, and brings the folders in it up.
func dissolve(ctx context.Context, top *os.Root, name string) error {
	_ = top.Chmod(name, 0o700) // so that it can be read and changed; what follows says if not
	for {
		names, err := some(ctx, top, name)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return drop(top, name)
		}
		for _, sub := range names {
			below := name + "/" + sub
			err := drop(top, below)
			if isFolder(top, below, err) {
				_ = top.Chmod(below, 0o700) // or it could not be moved
				err = top.Rename(below, string(cove.NewID()))
			}
			if err != nil {
				return err
			}
		}
	}
}

// drop removes a file, a link or an empty folder; one that is gone is no error.
func drop(top *os.Root, name string) error {
	if err := top.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isFolder reports whether the error of a removal may be that of a folder with
// something in it.
func isFolder(top *os.Root, name string, err error) bool {
	if err == nil {
		return false
	}
	info, serr := top.Lstat(name)
	return serr == nil && info.IsDir()
}

// some returns a few of the names in a folder.
func some(ctx context.Context, top *os.Root, name string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := top.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(maxNames)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, errors.Join(err, f.Close())
}
