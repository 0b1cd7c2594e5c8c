package fake

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// files is the tree as callers see it.
type files struct{ s *sandbox }

var _ cove.Files = files{}

// Files implements [cove.Sandbox].
func (s *sandbox) Files() cove.Files { return files{s} }

// name begins a call and makes a name absolute.
func (f files) name(ctx context.Context, name string) (string, error) {
	if err := f.s.ready(ctx, "file"); err != nil {
		return "", err
	}
	switch {
	case name == "":
		return "", cove.InvalidField("path", "is empty")
	case len(name) > maxPath:
		return "", cove.InvalidField("path", "is %d bytes long; the most is %d", len(name), maxPath)
	case strings.ContainsRune(name, 0):
		return "", cove.InvalidField("path", "holds a NUL byte")
	}
	return absolute(cove.WorkspacePath, name), nil
}

// do runs fn on the tree and words its error for a caller.
func (f files) do(ctx context.Context, name string, fn func(t *tree, abs string) error) error {
	abs, err := f.name(ctx, name)
	if err != nil {
		return err
	}
	return fileError(name, f.s.tree.do(func() error { return fn(f.s.tree, abs) }))
}

// info describes a file. Called with the tree held still.
func (t *tree) info(p place, fi fs.FileInfo) cove.FileInfo {
	i := cove.FileInfo{Path: p.abs, Size: cove.Bytes(weight(fi)), Mode: fi.Mode(), Modified: fi.ModTime()}
	if p.on != nil {
		id, _ := inodeOf(fi)
		i.UID, i.GID, i.Meta = userID, userID, maps.Clone(t.meta[id])
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		i.Link, _ = p.readlink()
	}
	return i
}

// Stat implements [cove.Files]. It describes a link, not what it points to.
func (f files) Stat(ctx context.Context, name string) (info cove.FileInfo, err error) {
	err = f.do(ctx, name, func(t *tree, abs string) error {
		fi, p, err := t.stat(abs, false)
		if err == nil {
			info = t.info(p, fi)
		}
		return err
	})
	return info, err
}

// Read implements [cove.Files].
func (f files) Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 || length < 0 {
		return nil, cove.InvalidField("range", "offset %d and length %d must not be negative", offset, length)
	}
	var file *os.File
	err := f.do(ctx, name, func(t *tree, abs string) error {
		fi, p, err := t.stat(abs, true)
		switch {
		case err != nil:
			return err
		case fi.IsDir():
			return syscall.EISDIR
		case p.on == nil || !fi.Mode().IsRegular():
			return syscall.EINVAL
		}
		if file, err = p.on.root.Open(p.name); err != nil {
			return err
		}
		if _, err = file.Seek(offset, io.SeekStart); err != nil {
			_ = file.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if length == 0 {
		return file, nil
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(file, length), file}, nil
}

// Tag implements [cove.Files]. The attributes are this process's own: they are
// neither on the host's disk nor in archives and snapshots.
func (f files) Tag(ctx context.Context, name string, meta map[string]string) error {
	if err := cove.CheckMeta(meta); err != nil {
		return err
	}
	return f.do(ctx, name, func(t *tree, abs string) error { return t.tag(abs, meta) })
}

// Mkdir implements [cove.Files].
func (f files) Mkdir(ctx context.Context, name string) error {
	return f.do(ctx, name, func(t *tree, abs string) error { return t.mkdirAll(abs) })
}

// Move implements [cove.Files].
func (f files) Move(ctx context.Context, from, to string) error {
	target, err := f.name(ctx, to)
	if err != nil {
		return err
	}
	return f.do(ctx, from, func(t *tree, abs string) error { return t.rename(abs, target) })
}

// Remove implements [cove.Files].
func (f files) Remove(ctx context.Context, name string) error {
	return f.do(ctx, name, func(t *tree, abs string) error { return t.removeAll(abs) })
}

// List implements [cove.Files].
func (f files) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return func(yield func(cove.FileInfo, error) bool) {
		if depth < 1 || depth > cove.MaxListDepth {
			yield(cove.FileInfo{}, cove.InvalidField("depth", "%d is out of range; use 1 to %d", depth, cove.MaxListDepth))
			return
		}
		var top place
		err := f.do(ctx, dir, func(t *tree, abs string) error {
			var err error
			top, err = t.walk(abs, true)
			return err
		})
		if err != nil {
			yield(cove.FileInfo{}, err)
			return
		}
		f.list(ctx, top.abs, depth, yield)
	}
}

// list yields one directory and goes down. The tree is held for one directory
// at a time, so what changes meanwhile may be seen or not.
func (f files) list(ctx context.Context, dir string, depth int, yield func(cove.FileInfo, error) bool) bool {
	var infos []cove.FileInfo
	err := f.s.ready(ctx, "file")
	if err == nil {
		err = fileError(dir, f.s.tree.do(func() error {
			list, err := f.s.tree.entries(f.s.tree.at(dir))
			for _, e := range list {
				infos = append(infos, f.s.tree.info(f.s.tree.at(path.Join(dir, e.Name())), e))
			}
			return err
		}))
	}
	if err != nil {
		yield(cove.FileInfo{}, err)
		return false
	}
	for _, i := range infos {
		if !yield(i, nil) {
			return false
		}
		if i.Mode.IsDir() && depth > 1 && !f.list(ctx, i.Path, depth-1, yield) {
			return false
		}
	}
	return true
}

// Watch implements [cove.Files]. It sees what this process changes.
func (f files) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	return func(yield func(cove.Change, error) bool) {
		var w *watch
		err := f.do(ctx, dir, func(t *tree, abs string) error {
			fi, p, err := t.stat(abs, true)
			switch {
			case err != nil:
				return err
			case !fi.IsDir():
				return syscall.ENOTDIR
			}
			w = newWatch(p.abs)
			t.watches[w] = struct{}{}
			return nil
		})
		if err != nil {
			yield(cove.Change{}, err)
			return
		}
		defer func() {
			f.s.tree.mu.Lock()
			defer f.s.tree.mu.Unlock()
			delete(f.s.tree.watches, w)
		}()
		if !yield(cove.Change{Kind: cove.Watching, Path: w.dir}, nil) {
			return
		}
		f.follow(ctx, w, yield)
	}
}

func (f files) follow(ctx context.Context, w *watch, yield func(cove.Change, error) bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.gone:
			yield(cove.Change{}, f.s.errGone())
			return
		case <-w.poke:
		}
		for _, c := range w.take() {
			if ctx.Err() != nil || !yield(c, nil) {
				return
			}
		}
	}
}
