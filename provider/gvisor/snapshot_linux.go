package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// The parts of a snapshot. Its files are there besides its memory, because an
// image of memory is good only for the same gVisor on the same host.
const (
	imagePart = "image"
	filesPart = "files.tar"
	notePart  = "note.json"
)

// Snapshot implements [cove.Snapshotter].
func (s *sandbox) Snapshot(ctx context.Context, name cove.ID) (cove.Bytes, error) {
	if err := s.p.books.Enter(); err != nil {
		return 0, err
	}
	defer s.p.books.Leave()
	if !name.Valid() {
		return 0, cove.InvalidField("snapshot", "%.60q is not an id", string(name))
	}
	if s.isGone() {
		return 0, s.goneError()
	}
	dir := s.made.h.snapshot(name)
	if _, err := os.Lstat(dir); err == nil {
		return 0, cove.Errorf(cove.Conflict, "snapshot %s exists already", name)
	}
	tmp, err := os.MkdirTemp(s.made.h.saved, "new-")
	if err != nil {
		return 0, diskError(err, "the snapshot cannot be written")
	}
	size, err := s.save(ctx, tmp)
	if err == nil {
		err = commit(tmp, dir)
	}
	if err != nil {
		return 0, joined(err, os.RemoveAll(tmp))
	}
	return size, nil
}

// commit makes a snapshot appear, whole and to stay.
func commit(tmp, dir string) error {
	err := errors.Join(syncTree(tmp), unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE), syncDir(filepath.Dir(dir)))
	if errors.Is(err, os.ErrExist) {
		return cove.Errorf(cove.Conflict, "snapshot %s exists already", filepath.Base(dir))
	}
	if err != nil {
		return diskError(err, "the snapshot cannot be written")
	}
	return nil
}

// save writes all of a sandbox into a directory. Its programs stand still only
// while their memory is written.
func (s *sandbox) save(ctx context.Context, dir string) (size cove.Bytes, err error) {
	err = s.still(ctx, "saved", func(string) error {
		return s.awake(ctx, func() error {
			if err := s.checkpoint(ctx, filepath.Join(dir, imagePart)); err != nil {
				return err
			}
			return s.saveFiles(ctx, filepath.Join(dir, filesPart))
		})
	})
	n := s.noted()
	n.Bundle = ""
	if err == nil {
		err = writeNote(filepath.Join(dir, notePart), &n)
	}
	if err != nil {
		return 0, err
	}
	return sizeOf(dir)
}

// checkpoint writes the memory of a sandbox that runs.
func (s *sandbox) checkpoint(ctx context.Context, image string) error {
	if err := os.Mkdir(image, 0o700); err != nil {
		return diskError(err, "the memory of a sandbox cannot be written")
	}
	err := s.made.h.run.checkpoint(ctx, s.made.name, image)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case s.isGone():
		return s.goneError()
	case strings.Contains(err.Error(), unix.ENOSPC.Error()):
		return diskError(unix.ENOSPC, "the memory of sandbox "+string(s.id)+" cannot be written")
	}
	return cove.Wrap(cove.Unavailable, err, "the memory of sandbox %s cannot be written: %.300s", s.id, err.Error()).Remedy("try again")
}

// saveFiles writes the workspace.
func (s *sandbox) saveFiles(ctx context.Context, path string) error {
	r, err := s.conn.Files().Archive(ctx, ".")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in a directory of ours
	if err == nil {
		_, err = io.Copy(f, r)
		err = errors.Join(err, f.Close())
	}
	err = errors.Join(err, r.Close())
	if _, ours := errors.AsType[*cove.Error](err); err != nil && !ours {
		return diskError(err, "the files of a sandbox cannot be written")
	}
	return err
}

// Fork implements [cove.Forker].
func (s *sandbox) Fork(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if err := s.p.books.Enter(); err != nil {
		return nil, err
	}
	defer s.p.books.Leave()
	if s.isGone() {
		return nil, s.goneError()
	}
	o, err := s.p.admit(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	if err := s.p.reserve(id); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(s.made.h.saved, "new-")
	if err != nil {
		s.p.books.Release(id)
		return nil, diskError(err, "the copy cannot be written")
	}
	if _, err = s.save(ctx, tmp); err != nil {
		s.p.books.Release(id)
		return nil, joined(err, os.RemoveAll(tmp))
	}
	box, err := s.p.from(ctx, id, o, tmp)
	if gone := os.RemoveAll(tmp); gone != nil && err == nil {
		return nil, joined(diskError(gone, "what a copy was made from cannot be removed"), box.Destroy(ctx))
	}
	return box, err
}

// createFrom makes a sandbox from a snapshot.
func (p *Provider) createFrom(ctx context.Context, id cove.ID, o order) (cove.Sandbox, error) {
	dir := o.h.snapshot(o.spec.Snapshot)
	if _, err := os.Lstat(dir); err != nil {
		return nil, cove.Errorf(cove.NotFound, "snapshot %s is unknown", o.spec.Snapshot)
	}
	if err := p.reserve(id); err != nil {
		return nil, err
	}
	return p.from(ctx, id, o, dir)
}

// from makes a sandbox whose id is reserved from what was saved: with its memory,
// if the order is for the same kind of sandbox, and with its files alone if not.
func (p *Provider) from(ctx context.Context, id cove.ID, o order, dir string) (cove.Sandbox, error) {
	n, err := readNote(filepath.Join(dir, notePart))
	if err != nil {
		p.books.Release(id)
		return nil, diskError(err, "the snapshot cannot be read")
	}
	if o.resembles(n) {
		box, err := p.build(ctx, id, o, filepath.Join(dir, imagePart))
		if err != nil {
			return nil, err
		}
		if s, ok := cove.As[*sandbox](box); ok {
			if err = s.conn.Forget(ctx, aheadName); err == nil { // as are all that are not kept
				err = s.conn.Release(ctx)
			}
		}
		if err != nil {
			return nil, joined(err, box.Destroy(ctx))
		}
		return box, nil
	}
	box, err := p.build(ctx, id, o, "")
	if err != nil {
		return nil, err
	}
	if err := unpack(ctx, box, filepath.Join(dir, filesPart)); err != nil {
		return nil, joined(err, box.Destroy(ctx))
	}
	return box, nil
}

// resembles reports whether memory that was saved can go on in what is ordered:
// all that is mounted must be the same, and who reads it, and how many processes a
// program may have, which nobody can change while it runs.
func (o order) resembles(n *note) bool {
	return n.Runtime == o.h.version && n.Host == hostPrint() && n.Digest == o.base.digest && n.Spec.Template == o.spec.Template &&
		n.Places == placesOf(o.spec) && n.Spec.Resources.PIDs == o.spec.Resources.PIDs && len(n.Spec.Volumes) == 0 && len(o.spec.Volumes) == 0 && n.Root == o.h.rootKey(o.base)
}

// rootKey is the key of the tree of a template; "" if there is none.
func (h *hostSide) rootKey(b base) string {
	t, err := h.rootOf(b, nil)
	if err != nil {
		return ""
	}
	return t.key
}

// hostPrint tells whether the host's own programs are still those that were there:
// memory has parts of them in it.
func hostPrint() string {
	var b strings.Builder
	for _, path := range []string{"/etc/ld.so.cache", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"} {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%s %d;", path, info.ModTime().UnixNano())
		}
	}
	return b.String()
}

// unpack gives a sandbox the files of a snapshot.
func unpack(ctx context.Context, box cove.Sandbox, path string) error {
	f, err := os.Open(path) //nolint:gosec // in a directory of ours
	if err != nil {
		return diskError(err, "the snapshot cannot be read")
	}
	defer func() { _ = f.Close() }()
	return box.Files().Unpack(ctx, ".", f)
}

// RemoveSnapshot implements [cove.SnapshotKeeper].
func (p *Provider) RemoveSnapshot(ctx context.Context, name cove.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !name.Valid() {
		return nil
	}
	if err := p.books.Enter(); err != nil {
		return err
	}
	defer p.books.Leave()
	h, err := p.open()
	if err != nil {
		return err
	}
	// Under another name first, so that half of one is never found.
	gone := filepath.Join(h.saved, "old-"+string(cove.NewID()))
	if err := os.Rename(h.snapshot(name), gone); err != nil && !errors.Is(err, os.ErrNotExist) {
		return diskError(err, "the snapshot cannot be removed")
	}
	if err := os.RemoveAll(gone); err != nil {
		return diskError(err, "the snapshot cannot be removed")
	}
	return nil
}

func (h *hostSide) snapshot(name cove.ID) string { return filepath.Join(h.saved, string(name)) }

// snapshots returns what is written down of all of them.
func (h *hostSide) snapshots() []*note {
	list, err := filepath.Glob(filepath.Join(h.saved, "*", notePart))
	if err != nil {
		return nil
	}
	var all []*note
	for _, path := range list {
		if n, err := readNote(path); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// sweepSnapshots removes what was not finished, or was half removed.
func (h *hostSide) sweepSnapshots() error {
	list, err := os.ReadDir(h.saved)
	if err != nil {
		return diskError(err, "the directory of provider "+name+" cannot be read")
	}
	var errs []error
	for _, e := range list {
		if !cove.ID(e.Name()).Valid() {
			errs = append(errs, os.RemoveAll(filepath.Join(h.saved, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// sizeOf is how much a directory takes.
func sizeOf(dir string) (cove.Bytes, error) {
	var sum cove.Bytes
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sum += cove.Bytes(info.Size())
		}
		return err
	})
	if err != nil {
		return 0, diskError(err, "the snapshot cannot be read")
	}
	return sum, nil
}

// syncTree puts a directory on the disk, with all that is in it.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncDir(path)
	})
}

// syncDir puts a file or a directory on the disk.
func syncDir(path string) error {
	f, err := os.Open(path) //nolint:gosec // in a directory of ours
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
