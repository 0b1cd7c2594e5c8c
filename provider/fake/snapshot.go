package fake

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/cove-sandbox/cove"
)

// snapshotDir holds the snapshots, beside the sandboxes.
const snapshotDir = ".snapshots"

// freeze saves the files of a tree under a name.
func (p *Provider) freeze(t *tree, name cove.ID) (cove.Bytes, error) {
	if !name.Valid() {
		return 0, cove.InvalidField("snapshot", "%.60q is not an id", string(name))
	}
	kept := path.Join(snapshotDir, string(name))
	if err := p.root.MkdirAll(snapshotDir, 0o700); err != nil {
		return 0, cove.Wrap(cove.Unavailable, err, "snapshots cannot be kept")
	}
	if _, err := p.root.Lstat(kept); err == nil {
		return 0, cove.Errorf(cove.Conflict, "snapshot %s exists already", name)
	}
	size, err := t.copyOut(p.root, kept+".new")
	if err == nil {
		err = p.root.Rename(kept+".new", kept)
	}
	if err != nil {
		return 0, after(fileError(string(name), err), p.root.RemoveAll(kept+".new"))
	}
	return cove.Bytes(size), nil
}

// unfreeze copies the files of a snapshot into the directory of a sandbox.
func (p *Provider) unfreeze(box *os.Root, name cove.ID) error {
	kept := path.Join(snapshotDir, string(name))
	if _, err := p.root.Lstat(kept); err != nil {
		return cove.Wrap(cove.NotFound, err, "snapshot %s does not exist", name)
	}
	_, err := copyTree(box, treeDir, p.root, kept)
	return err
}

// RemoveSnapshot implements [cove.SnapshotKeeper].
func (l keeping) RemoveSnapshot(ctx context.Context, name cove.ID) error {
	if err := l.enter(ctx, "snapshot", name); err != nil {
		return err
	}
	if !name.Valid() {
		return nil
	}
	if err := l.root.RemoveAll(path.Join(snapshotDir, string(name))); err != nil {
		return cove.Wrap(cove.Unavailable, err, "snapshot %s cannot be removed", name)
	}
	return nil
}

// copyOut copies the sandbox's own files while nothing changes.
func (t *tree) copyOut(to *os.Root, dir string) (size int64, err error) {
	err = t.do(func() error {
		size, err = copyTree(to, dir, t.root, ".")
		return err
	})
	return size, err
}

// copyTree copies files, directories and links, with modes and times.
func copyTree(to *os.Root, dst string, from *os.Root, src string) (int64, error) {
	fi, err := from.Lstat(src)
	switch {
	case err != nil:
		return 0, err
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := from.Readlink(src)
		if err != nil {
			return 0, err
		}
		return 0, to.Symlink(target, dst)
	case fi.IsDir():
		return copyDir(to, dst, from, src, fi)
	case !fi.Mode().IsRegular():
		return 0, nil
	}
	in, err := from.Open(src)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }()
	out, err := to.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fi.Mode().Perm())
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, in)
	return n, errors.Join(err, out.Close(), to.Chmod(dst, fi.Mode().Perm()), to.Chtimes(dst, fi.ModTime(), fi.ModTime()))
}

func copyDir(to *os.Root, dst string, from *os.Root, src string, fi fs.FileInfo) (int64, error) {
	if err := to.Mkdir(dst, 0o700); err != nil {
		return 0, err
	}
	dir, err := from.Open(src)
	if err != nil {
		return 0, err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return 0, err
	}
	total := int64(0)
	for _, name := range names {
		if src == "." && name == stagingDir {
			continue
		}
		n, err := copyTree(to, path.Join(dst, name), from, path.Join(src, name))
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, errors.Join(to.Chmod(dst, fi.Mode().Perm()), to.Chtimes(dst, fi.ModTime(), fi.ModTime()))
}
