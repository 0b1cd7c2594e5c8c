package rootfs

import (
	"context"
	"io/fs"
	"os"

	"github.com/cove-sandbox/cove"
)

// Copy puts a directory of the host into the tree, with what is on other file
// systems below it. Links stay links; devices, sockets and the like are left out.
func (u *Unpacker) Copy(ctx context.Context, from string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return fault(err, from)
	}
	defer func() { _ = root.Close() }()
	return fault(walk(ctx, root, func(name string, info fs.FileInfo) error { return u.copyOne(root, name, info) }), from)
}

func (u *Unpacker) copyOne(root *os.Root, name string, info fs.FileInfo) error {
	if err := u.count(); err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return u.dir(name)
	case mode&fs.ModeSymlink != 0:
		to, err := root.Readlink(name)
		if err != nil {
			return err
		}
		return u.symlink(name, to)
	case mode.IsRegular():
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		now, err := f.Stat()
		if err != nil {
			return err
		}
		if !now.Mode().IsRegular() {
			return cove.Errorf(cove.Conflict, "%.80q changed while it was copied", name).Remedy("try again when nothing writes there")
		}
		return u.file(name, now.Mode(), now.ModTime(), now.Size(), f)
	default:
		u.left++
		return nil
	}
}
