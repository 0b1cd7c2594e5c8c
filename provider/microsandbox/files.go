//go:build linux

package microsandbox

import (
	"context"
	"io"
	"io/fs"
	"iter"

	"github.com/cove-sandbox/cove"
)

// files is the tree of a sandbox, by whatever connection there is.
type files struct{ s *sandbox }

var _ cove.Files = files{}

// through calls the files of the connection.
func through[T any](ctx context.Context, f files, call func(cove.Files) (T, error)) (T, error) {
	c, err := f.s.conn(ctx)
	if err != nil {
		var zero T
		return zero, err
	}
	return call(c.Files())
}

func (f files) plain(ctx context.Context, call func(cove.Files) error) error {
	_, err := through(ctx, f, func(in cove.Files) (struct{}, error) { return struct{}{}, call(in) })
	return err
}

// Stat implements [cove.Files].
func (f files) Stat(ctx context.Context, name string) (cove.FileInfo, error) {
	return through(ctx, f, func(in cove.Files) (cove.FileInfo, error) { return in.Stat(ctx, name) })
}

// Read implements [cove.Files].
func (f files) Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return through(ctx, f, func(in cove.Files) (io.ReadCloser, error) { return in.Read(ctx, name, offset, length) })
}

// Archive implements [cove.Files].
func (f files) Archive(ctx context.Context, dir string) (io.ReadCloser, error) {
	return through(ctx, f, func(in cove.Files) (io.ReadCloser, error) { return in.Archive(ctx, dir) })
}

// Write implements [cove.Files].
func (f files) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	return f.plain(ctx, func(in cove.Files) error { return in.Write(ctx, name, r, mode) })
}

// Mkdir implements [cove.Files].
func (f files) Mkdir(ctx context.Context, name string) error {
	return f.plain(ctx, func(in cove.Files) error { return in.Mkdir(ctx, name) })
}

// Move implements [cove.Files].
func (f files) Move(ctx context.Context, from, to string) error {
	return f.plain(ctx, func(in cove.Files) error { return in.Move(ctx, from, to) })
}

// Remove implements [cove.Files].
func (f files) Remove(ctx context.Context, name string) error {
	return f.plain(ctx, func(in cove.Files) error { return in.Remove(ctx, name) })
}

// Tag implements [cove.Files].
func (f files) Tag(ctx context.Context, name string, meta map[string]string) error {
	return f.plain(ctx, func(in cove.Files) error { return in.Tag(ctx, name, meta) })
}

// Unpack implements [cove.Files].
func (f files) Unpack(ctx context.Context, dir string, tar io.Reader) error {
	return f.plain(ctx, func(in cove.Files) error { return in.Unpack(ctx, dir, tar) })
}

// List implements [cove.Files].
func (f files) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return func(yield func(cove.FileInfo, error) bool) {
		all, err := through(ctx, f, func(in cove.Files) (iter.Seq2[cove.FileInfo, error], error) { return in.List(ctx, dir, depth), nil })
		if err != nil {
			yield(cove.FileInfo{}, err)
			return
		}
		all(yield)
	}
}

// Watch implements [cove.Files].
func (f files) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	return func(yield func(cove.Change, error) bool) {
		if ctx.Err() != nil {
			return
		}
		all, err := through(ctx, f, func(in cove.Files) (iter.Seq2[cove.Change, error], error) { return in.Watch(ctx, dir), nil })
		if err != nil {
			yield(cove.Change{}, err)
			return
		}
		all(yield)
	}
}
