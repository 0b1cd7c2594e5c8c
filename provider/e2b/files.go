//go:build linux

package e2b

import (
	"context"
	"io"
	"io/fs"
	"iter"

	"github.com/cove-sandbox/cove"
)

// files is the file tree of a sandbox, through whichever agent is inside.
type files struct{ s *sandbox }

func (f files) inside(ctx context.Context) (cove.Files, error) {
	conn, err := f.s.inside(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Files(), nil
}

// with calls what has no answer but its error.
func (f files) with(ctx context.Context, do func(cove.Files) error) error {
	in, err := f.inside(ctx)
	if err != nil {
		return err
	}
	return do(in)
}

// Stat implements [cove.Files].
func (f files) Stat(ctx context.Context, name string) (info cove.FileInfo, err error) {
	err = f.with(ctx, func(in cove.Files) error { info, err = in.Stat(ctx, name); return err })
	return info, err
}

// Read implements [cove.Files].
func (f files) Read(ctx context.Context, name string, offset, length int64) (r io.ReadCloser, err error) {
	err = f.with(ctx, func(in cove.Files) error { r, err = in.Read(ctx, name, offset, length); return err })
	return r, err
}

// Write implements [cove.Files].
func (f files) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	return f.with(ctx, func(in cove.Files) error { return in.Write(ctx, name, r, mode) })
}

// List implements [cove.Files].
func (f files) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return each(ctx, f, func(in cove.Files) iter.Seq2[cove.FileInfo, error] { return in.List(ctx, dir, depth) })
}

// Mkdir implements [cove.Files].
func (f files) Mkdir(ctx context.Context, name string) error {
	return f.with(ctx, func(in cove.Files) error { return in.Mkdir(ctx, name) })
}

// Move implements [cove.Files].
func (f files) Move(ctx context.Context, from, to string) error {
	return f.with(ctx, func(in cove.Files) error { return in.Move(ctx, from, to) })
}

// Remove implements [cove.Files].
func (f files) Remove(ctx context.Context, name string) error {
	return f.with(ctx, func(in cove.Files) error { return in.Remove(ctx, name) })
}

// Tag implements [cove.Files].
func (f files) Tag(ctx context.Context, name string, meta map[string]string) error {
	return f.with(ctx, func(in cove.Files) error { return in.Tag(ctx, name, meta) })
}

// Archive implements [cove.Files].
func (f files) Archive(ctx context.Context, dir string) (r io.ReadCloser, err error) {
	err = f.with(ctx, func(in cove.Files) error { r, err = in.Archive(ctx, dir); return err })
	return r, err
}

// Unpack implements [cove.Files].
func (f files) Unpack(ctx context.Context, dir string, tar io.Reader) error {
	return f.with(ctx, func(in cove.Files) error { return in.Unpack(ctx, dir, tar) })
}

// Watch implements [cove.Files].
func (f files) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	return each(ctx, f, func(in cove.Files) iter.Seq2[cove.Change, error] { return in.Watch(ctx, dir) })
}

// each is a list through whichever agent is inside when the loop begins.
func each[T any](ctx context.Context, f files, list func(cove.Files) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		in, err := f.inside(ctx)
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		list(in)(yield)
	}
}
