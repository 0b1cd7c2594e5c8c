package engine

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// files is a session's file tree with policy and journal in front.
type files struct {
	v  view
	id cove.ID
}

// at is the action on a path. The path itself goes to policy and, as a hash,
// into the journal.
func (f files) at(verb cove.Verb, name string) action {
	a := on(verb, f.id)
	a.Path = name
	if !verb.Trait().Reads {
		a.data = f.v.e.contentOf(name)
	}
	return a
}

// tree enters the session and resolves names; the caller leaves.
func tree(st *step, names ...*string) (cove.Files, error) {
	mounts := st.lease.mounts()
	for _, name := range names {
		clean, err := cove.CleanPath(*name, mounts...)
		if err != nil {
			return nil, err
		}
		*name = clean
	}
	sandbox, err := st.lease.enter()
	if err != nil {
		return nil, err
	}
	return sandbox.Files(), nil
}

// inTree is the road for calls that are over when they return.
func inTree[T any](ctx context.Context, v view, a action, names []*string, do func(context.Context, cove.Files) (T, error)) (T, error) {
	return act(ctx, v, a, func(ctx context.Context, st *step) (T, error) {
		t, err := tree(st, names...)
		if err != nil {
			var zero T
			return zero, err
		}
		defer st.lease.leave()
		return do(ctx, t)
	})
}

// Stat implements [cove.Files].
func (f files) Stat(ctx context.Context, name string) (cove.FileInfo, error) {
	return inTree(ctx, f.v, f.at(cove.FileStat, name), []*string{&name}, func(ctx context.Context, t cove.Files) (cove.FileInfo, error) {
		return t.Stat(ctx, name)
	})
}

// Write implements [cove.Files]. A file over the limit is refused before its
// last byte is taken, and the old content stays.
func (f files) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	a := f.at(cove.FileWrite, name)
	a.moved = new(atomic.Int64)
	_, err := inTree(ctx, f.v, a, []*string{&name}, func(ctx context.Context, t cove.Files) (struct{}, error) {
		if r == nil {
			return struct{}{}, cove.InvalidField("body", "is missing")
		}
		return struct{}{}, t.Write(ctx, name, &capped{r: f.v.e.upTo(f.v.p.Tenant, r, a.moved), left: int64(f.v.e.cfg.MaxFileSize), most: f.v.e.cfg.MaxFileSize}, mode)
	})
	return err
}

// Mkdir implements [cove.Files].
func (f files) Mkdir(ctx context.Context, name string) error {
	_, err := inTree(ctx, f.v, f.at(cove.FileMkdir, name), []*string{&name}, func(ctx context.Context, t cove.Files) (struct{}, error) {
		return struct{}{}, t.Mkdir(ctx, name)
	})
	return err
}

// Move implements [cove.Files].
func (f files) Move(ctx context.Context, from, to string) error {
	_, err := inTree(ctx, f.v, f.at(cove.FileMove, from), []*string{&from, &to}, func(ctx context.Context, t cove.Files) (struct{}, error) {
		return struct{}{}, t.Move(ctx, from, to)
	})
	return err
}

// Remove implements [cove.Files].
func (f files) Remove(ctx context.Context, name string) error {
	_, err := inTree(ctx, f.v, f.at(cove.FileRemove, name), []*string{&name}, func(ctx context.Context, t cove.Files) (struct{}, error) {
		return struct{}{}, t.Remove(ctx, name)
	})
	return err
}

// Tag implements [cove.Files].
func (f files) Tag(ctx context.Context, name string, meta map[string]string) error {
	_, err := inTree(ctx, f.v, f.at(cove.FileTag, name), []*string{&name}, func(ctx context.Context, t cove.Files) (struct{}, error) {
		if err := cove.CheckMeta(meta); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, t.Tag(ctx, name, meta)
	})
	return err
}

// Unpack implements [cove.Files]. A file over the limit ends it.
func (f files) Unpack(ctx context.Context, dir string, tar io.Reader) error {
	a := f.at(cove.FileUnpack, dir)
	a.moved = new(atomic.Int64)
	_, err := inTree(ctx, f.v, a, []*string{&dir}, func(ctx context.Context, t cove.Files) (struct{}, error) {
		if tar == nil {
			return struct{}{}, cove.InvalidField("body", "is missing")
		}
		bounded := capTar(f.v.e.upTo(f.v.p.Tenant, tar, a.moved), f.v.e.cfg.MaxFileSize)
		defer bounded.stop()
		return struct{}{}, t.Unpack(ctx, dir, bounded)
	})
	return err
}

// Read implements [cove.Files]. The session is busy until the reader is closed.
func (f files) Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return f.open(ctx, f.at(cove.FileRead, name), &name, func(ctx context.Context, t cove.Files) (io.ReadCloser, error) {
		if offset < 0 || length < 0 {
			return nil, cove.InvalidField("offset", "offset and length are not negative")
		}
		return t.Read(ctx, name, offset, length)
	})
}

// Archive implements [cove.Files]. The session is busy until the reader is
// closed.
func (f files) Archive(ctx context.Context, dir string) (io.ReadCloser, error) {
	return f.open(ctx, f.at(cove.FileArchive, dir), &dir, func(ctx context.Context, t cove.Files) (io.ReadCloser, error) {
		return t.Archive(ctx, dir)
	})
}

func (f files) open(ctx context.Context, a action, name *string, do func(context.Context, cove.Files) (io.ReadCloser, error)) (io.ReadCloser, error) {
	return act(ctx, f.v, a, func(ctx context.Context, st *step) (io.ReadCloser, error) {
		began := time.Now()
		t, err := tree(st, name)
		if err != nil {
			return nil, err
		}
		r, err := do(ctx, t)
		if err != nil {
			st.lease.leave()
			return nil, err
		}
		return &leaving{ReadCloser: f.v.e.downFrom(st.lease.tenant, r), leave: func(bytes int64) {
			st.lease.leave()
			f.v.e.tellOf(ctx, st.lease, cove.Happening{Kind: cove.FileDownloaded, Bytes: bytes, Wall: time.Since(began)})
		}}, nil
	})
}

// List implements [cove.Files].
func (f files) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return actSeq(ctx, f.v, f.at(cove.FileList, dir), func(ctx context.Context, st *step) (iter.Seq2[cove.FileInfo, error], error) {
		if depth < 1 || depth > cove.MaxListDepth {
			return nil, cove.InvalidField("depth", "%d is out of range; use 1 to %d", depth, cove.MaxListDepth)
		}
		t, err := tree(st, &dir)
		if err != nil {
			return nil, err
		}
		return leaveAfter(st.lease, t.List(ctx, dir, depth)), nil
	})
}

// Watch implements [cove.Files]. It ends with the sandbox.
func (f files) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	return actSeq(ctx, f.v, f.at(cove.FileWatch, dir), func(ctx context.Context, st *step) (iter.Seq2[cove.Change, error], error) {
		t, err := tree(st, &dir)
		if err != nil {
			return nil, err
		}
		st.lease.leave() // who only looks on does not keep a session busy
		return func(yield func(cove.Change, error) bool) {
			ctx, done := st.lease.watch(ctx)
			defer done()
			for c, err := range t.Watch(ctx, dir) {
				if !yield(c, err) {
					return
				}
			}
		}, nil
	})
}

// leaveAfter yields a list and leaves the lease when it is over.
func leaveAfter[T any](l *lease, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer l.leave()
		seq(yield)
	}
}
