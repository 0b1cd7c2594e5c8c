package fake

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// Unpack implements [cove.Files]. What came before a bad entry stays.
func (f files) Unpack(ctx context.Context, dir string, r io.Reader) error {
	abs, err := f.name(ctx, dir)
	if err != nil {
		return err
	}
	var top place
	err = f.s.tree.do(func() error {
		if err := f.s.tree.mkdirAll(abs); err != nil {
			return err
		}
		top, err = f.s.tree.walk(abs, true)
		return err
	})
	if err != nil {
		return fileError(dir, err)
	}
	in := tar.NewReader(r)
	for {
		if err := f.s.ready(ctx, "file"); err != nil {
			return err
		}
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return archiveError(err)
		}
		if err := f.extract(ctx, top.abs, h, in); err != nil {
			return err
		}
	}
}

func archiveError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return cove.Wrap(cove.Invalid, err, "archive: it is cut short; send it again")
	}
	if code := cove.CodeOf(err); code != cove.Internal {
		return err
	}
	return cove.Wrap(cove.Invalid, err, "archive: this is not a tar stream")
}

// extract makes one entry.
func (f files) extract(ctx context.Context, top string, h *tar.Header, in io.Reader) error {
	name, err := entryName(h.Name)
	if err != nil {
		return err
	}
	abs := path.Join(top, name)
	t := f.s.tree
	if err := t.do(func() error { return t.clear(top, abs, h) }); err != nil {
		return entryError(h, err)
	}
	mode := fs.FileMode(h.Mode&0o777) | 0o600 // the owner must be able to remove it again
	switch h.Typeflag {
	case tar.TypeDir:
		err = t.do(func() error {
			if err := t.mkdirAll(abs); err != nil || name == "." {
				return err
			}
			return t.chmod(abs, mode)
		})
	case tar.TypeReg:
		err = t.replace(ctx, abs, in, mode, h.ModTime)
	case tar.TypeSymlink:
		if h.Linkname == "" || strings.ContainsRune(h.Linkname, 0) {
			return cove.Errorf(cove.Invalid, "archive: the link %.200q points to nothing that has a name", h.Name)
		}
		err = t.do(func() error { return t.symlink(h.Linkname, abs) })
	case tar.TypeLink:
		target, bad := entryName(h.Linkname)
		if bad != nil {
			return bad
		}
		err = t.do(func() error {
			if err := t.plain(top, path.Dir(path.Join(top, target))); err != nil {
				return err
			}
			return t.link(path.Join(top, target), abs)
		})
	default:
		return cove.Errorf(cove.Invalid, "archive: %.200q is neither a file, a directory nor a link", h.Name)
	}
	return entryError(h, err)
}

func entryError(h *tar.Header, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return archiveError(io.ErrUnexpectedEOF)
	}
	return fileError(h.Name, err)
}

// entryName checks the name of an entry and makes it relative and clean.
func entryName(name string) (string, error) {
	if name == "" || path.IsAbs(name) || strings.ContainsRune(name, 0) || slices.Contains(strings.Split(name, "/"), "..") {
		return "", cove.Errorf(cove.Invalid, "archive: the name %.200q leaves the directory", name)
	}
	return path.Clean(name), nil
}

// clear makes room for an entry: nothing is written through a link, and an
// older file of the same name gives way. Called with the tree held still.
func (t *tree) clear(top, abs string, h *tar.Header) error {
	if err := t.plain(top, path.Dir(abs)); err != nil {
		return err
	}
	if abs == top {
		if h.Typeflag != tar.TypeDir {
			return syscall.EISDIR
		}
		return nil
	}
	fi, _, err := t.stat(abs, false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t.mkdirAll(path.Dir(abs))
	case err != nil:
		return err
	case fi.IsDir() && h.Typeflag == tar.TypeDir:
		return nil
	case fi.IsDir():
		return syscall.EEXIST
	case fi.Mode().IsRegular() && h.Typeflag == tar.TypeReg:
		return nil
	}
	return t.remove(abs)
}

// plain refuses a way from top to dir that leads through a link.
func (t *tree) plain(top, dir string) error {
	for ; dir != top && within(top, dir); dir = path.Dir(dir) {
		fi, _, err := t.stat(dir, false)
		if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return cove.Errorf(cove.Invalid, "archive: %.200q is a link; nothing is written through it", strings.TrimPrefix(dir, top+"/"))
		}
	}
	return nil
}
