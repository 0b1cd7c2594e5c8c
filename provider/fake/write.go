package fake

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
)

// Write implements [cove.Files]. Mode 0 means 0644.
func (f files) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	abs, err := f.name(ctx, name)
	if err != nil {
		return err
	}
	if mode.Perm() == 0 {
		mode = 0o644
	}
	return fileError(name, f.s.tree.replace(ctx, abs, r, mode, time.Time{}))
}

// draft is a file that is being written out of sight. Its bytes are booked as
// they come.
type draft struct {
	t    *tree
	to   place // where it will be
	root *os.Root
	name string // where it is now
	f    *os.File
	size int64
}

// replace writes a file whole or not at all.
func (t *tree) replace(ctx context.Context, abs string, r io.Reader, mode fs.FileMode, modified time.Time) error {
	d := &draft{t: t}
	if err := t.do(func() error { return d.begin(abs) }); err != nil {
		return err
	}
	err := d.fill(ctx, r)
	if err == nil {
		err = d.f.Chmod(mode.Perm())
	}
	err = after(err, d.f.Close())
	if err == nil && !modified.IsZero() {
		err = d.root.Chtimes(d.name, modified, modified)
	}
	if err == nil {
		err = t.do(func() error { return d.commit(abs) })
	}
	if err != nil {
		d.drop()
	}
	return err
}

// begin opens the draft where a rename can reach the place of the file.
func (d *draft) begin(abs string) error {
	to, err := d.t.destination(abs)
	if err != nil {
		return err
	}
	d.to, d.root = to, to.on.root
	d.t.staged++
	if d.root == d.t.root {
		if err := d.root.MkdirAll(stagingDir, 0o700); err != nil {
			return err
		}
		d.name = path.Join(stagingDir, strconv.Itoa(d.t.staged))
	} else {
		d.name = path.Join(to.on.base, ".cove-draft-"+string(cove.NewID())) // others may share the volume
	}
	if err := to.on.book.take(0, 1); err != nil {
		return err
	}
	d.f, err = d.root.OpenFile(d.name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		to.on.book.give(0, 1)
	}
	return err
}

// destination finds where a file may be written. Directories above it that are
// missing are made only when it is complete.
func (t *tree) destination(abs string) (place, error) {
	fi, p, err := t.stat(abs, true)
	if err == nil && fi.IsDir() {
		return p, syscall.EISDIR
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return p, err
	case p.on == nil:
		return p, syscall.EACCES
	case p.on.readOnly:
		return p, syscall.EROFS
	}
	return p, nil
}

func (d *draft) fill(ctx context.Context, r io.Reader) error {
	buf := make([]byte, chunkSize)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		if n > 0 {
			if err := d.write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return contentError(err)
		}
	}
}

// contentError is what went wrong on the caller's side. It is not our bug, and
// what the caller itself said stays as it is.
func contentError(err error) error {
	if _, ours := errors.AsType[*cove.Error](err); ours {
		return err
	}
	code := cove.CodeOf(err)
	if code == cove.Internal {
		code = cove.Canceled
	}
	return cove.Wrap(code, err, "the content ended early; nothing was written")
}

func (d *draft) write(b []byte) error {
	return d.t.do(func() error {
		if err := d.to.on.book.take(int64(len(b)), 0); err != nil {
			return err
		}
		d.size += int64(len(b))
		_, err := d.f.Write(b)
		return err
	})
}

// commit puts the draft in its place.
func (d *draft) commit(abs string) error {
	if err := d.t.mkdirAll(path.Dir(abs)); err != nil {
		if errors.Is(err, syscall.EEXIST) {
			return syscall.ENOTDIR
		}
		return err
	}
	p, err := d.t.writable(abs, true)
	if err != nil {
		return err
	}
	if p.on != d.to.on {
		return syscall.EXDEV
	}
	old, missing := d.t.lstat(p)
	if missing == nil && old.IsDir() {
		return syscall.EISDIR
	}
	if err := d.root.Rename(d.name, p.name); err != nil {
		return err
	}
	kind := cove.Created
	if missing == nil {
		d.t.settle(p.on.book, old)
		kind = cove.Modified
	}
	d.t.notify(kind, p.abs)
	return nil
}

// drop forgets the draft.
func (d *draft) drop() {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	d.to.on.book.give(d.size, 1)
	_ = d.root.Remove(d.name)
}
