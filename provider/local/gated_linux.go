package local

import (
	"context"
	"io"
	"io/fs"
	"iter"

	"github.com/cove-sandbox/cove"
)

// inside keeps the workspace where it is until the function it returns is called.
func (s *shelf) inside() (leave func()) {
	if s == nil {
		return func() {}
	}
	return s.gate.enter()
}

// correct takes out of what the agent counts in the store what is no file of the
// sandbox, and adds the files of other stores that it sees.
func (s *shelf) correct(u *cove.Usage) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u.Disk += cove.Bytes(s.shared.Size)
	u.Files += s.shared.Files - s.state.Extra
}

// gated are the files of a sandbox, which stay where they are during each call.
// What streams uses the workspace until its end.
type gated struct {
	cove.Files

	s *shelf
}

// Stat implements [cove.Files].
func (g gated) Stat(ctx context.Context, name string) (cove.FileInfo, error) {
	defer g.s.inside()()
	return g.Files.Stat(ctx, name)
}

// Read implements [cove.Files].
func (g gated) Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	defer g.s.inside()()
	return g.Files.Read(ctx, name, offset, length)
}

// Write implements [cove.Files].
func (g gated) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	g.s.regain(ctx)
	defer g.s.gate.use()()
	return g.Files.Write(ctx, name, r, mode)
}

// Mkdir implements [cove.Files].
func (g gated) Mkdir(ctx context.Context, name string) error {
	g.s.regain(ctx)
	defer g.s.inside()()
	return g.Files.Mkdir(ctx, name)
}

// Move implements [cove.Files].
func (g gated) Move(ctx context.Context, from, to string) error {
	g.s.regain(ctx)
	defer g.s.inside()()
	return g.Files.Move(ctx, from, to)
}

// Remove implements [cove.Files].
func (g gated) Remove(ctx context.Context, name string) error {
	defer g.s.inside()()
	return g.Files.Remove(ctx, name)
}

// Tag implements [cove.Files].
func (g gated) Tag(ctx context.Context, name string, meta map[string]string) error {
	defer g.s.inside()()
	return g.Files.Tag(ctx, name, meta)
}

// Unpack implements [cove.Files].
func (g gated) Unpack(ctx context.Context, dir string, r io.Reader) error {
	g.s.regain(ctx)
	defer g.s.gate.use()()
	return g.Files.Unpack(ctx, dir, r)
}

// List implements [cove.Files].
func (g gated) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return throughout(g.s, g.Files.List(ctx, dir, depth))
}

// Watch implements [cove.Files].
func (g gated) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	return throughout(g.s, g.Files.Watch(ctx, dir))
}

// throughout keeps the workspace where it is during a walk.
func throughout[T any](s *shelf, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer s.gate.use()()
		seq(yield)
	}
}

// Archive implements [cove.Files].
func (g gated) Archive(ctx context.Context, dir string) (io.ReadCloser, error) {
	leave := g.s.gate.use()
	r, err := g.Files.Archive(ctx, dir)
	if err != nil {
		leave()
		return nil, err
	}
	return &leaving{ReadCloser: r, leave: leave}, nil
}

// leaving is a stream that uses the workspace until it is closed.
type leaving struct {
	io.ReadCloser

	leave func()
}

// Close implements [io.Closer].
func (l *leaving) Close() error {
	defer l.leave()
	return l.ReadCloser.Close()
}
