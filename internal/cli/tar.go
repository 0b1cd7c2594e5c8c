//go:build !lean

package cli

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
)

// pack writes what is below a local directory as a tar with relative names.
// Sockets, devices and pipes are left out.
func pack(ctx context.Context, dir string, w io.Writer) error {
	t := tar.NewWriter(w)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return localError(dir, err)
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return localError(filepath.Join(dir, name), err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if name == "." || d.Type()&(fs.ModeSocket|fs.ModeDevice|fs.ModeNamedPipe|fs.ModeIrregular) != 0 {
			return nil
		}
		return packOne(t, root, dir, name, d)
	})
	if err != nil {
		return err
	}
	return t.Close()
}

func packOne(t *tar.Writer, root *os.Root, dir, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return localError(filepath.Join(dir, name), err)
	}
	link := ""
	if d.Type()&fs.ModeSymlink != 0 {
		if link, err = root.Readlink(name); err != nil {
			return localError(filepath.Join(dir, name), err)
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return localError(filepath.Join(dir, name), err)
	}
	h.Name, h.Uid, h.Gid, h.Uname, h.Gname = name, 0, 0, "", ""
	if d.IsDir() {
		h.Name += "/"
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	if !d.Type().IsRegular() {
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return localError(filepath.Join(dir, name), err)
	}
	defer func() { _ = f.Close() }()
	_, err = io.CopyN(t, f, info.Size())
	if errors.Is(err, io.EOF) {
		return cove.Errorf(cove.Conflict, "%s got shorter while it was copied; copy it again", filepath.Join(dir, name))
	}
	return err
}

// unpack extracts a tar from a sandbox. Nothing leaves root: names and links
// that point out of it, and whatever is no file, directory or link, are left
// out and said.
func (a *app) unpack(root *os.Root, r io.Reader) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		name := path.Clean(h.Name)
		if name == "." {
			continue
		}
		if !filepath.IsLocal(name) {
			a.note(fmt.Sprintf("left out %q, which would lie outside of the target", h.Name))
			continue
		}
		if err := a.unpackOne(root, t, h, name); err != nil {
			return err
		}
	}
}

func (a *app) unpackOne(root *os.Root, t *tar.Reader, h *tar.Header, name string) error {
	mode := fs.FileMode(h.Mode) & 0o755 //nolint:gosec // masked
	switch h.Typeflag {
	case tar.TypeDir:
		return rooted(root, name, root.MkdirAll(name, mode|0o700))
	case tar.TypeReg:
		return unpackFile(root, t, name, mode|0o200)
	case tar.TypeSymlink:
		inside := path.Join(path.Dir(name), h.Linkname) //nolint:gosec // this is the check against it
		if path.IsAbs(h.Linkname) || !filepath.IsLocal(inside) && inside != "." {
			a.note(fmt.Sprintf("left out the link %q, which points to %q", name, h.Linkname))
			return nil
		}
		if err := clear(root, name); err != nil {
			return err
		}
		return rooted(root, name, root.Symlink(h.Linkname, name))
	}
	a.note(fmt.Sprintf("left out %q, which is no file, directory or link", name))
	return nil
}

func unpackFile(root *os.Root, r io.Reader, name string, mode fs.FileMode) (err error) {
	if err := clear(root, name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return rooted(root, name, err)
	}
	_, err = io.Copy(f, r)
	return rooted(root, name, errors.Join(err, f.Close()))
}

// clear makes way for a file: its directory is made and an older one removed.
func clear(root *os.Root, name string) error {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return rooted(root, dir, err)
		}
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return rooted(root, name, err)
	}
	return nil
}

func rooted(root *os.Root, name string, err error) error {
	if err == nil {
		return nil
	}
	return localError(strings.TrimSuffix(root.Name(), "/")+"/"+name, err)
}
