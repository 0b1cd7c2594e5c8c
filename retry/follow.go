package retry

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"net"

	"github.com/cove-sandbox/cove"
)

// files are those of the session that an id stands for at each call.
type files struct {
	p  platform
	id cove.ID
}

func (f files) now() cove.Files { return f.p.Platform.Files(f.p.mem.now(f.id)) }

// Stat implements [cove.Files].
func (f files) Stat(ctx context.Context, name string) (cove.FileInfo, error) {
	return f.now().Stat(ctx, name)
}

// Read implements [cove.Files].
func (f files) Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return f.now().Read(ctx, name, offset, length)
}

// Write implements [cove.Files].
func (f files) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	return f.now().Write(ctx, name, r, mode)
}

// List implements [cove.Files].
func (f files) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return f.now().List(ctx, dir, depth)
}

var _ cove.FilePager = files{}

// ListPage implements [cove.FilePager].
func (f files) ListPage(ctx context.Context, dir string, depth, skip, limit int) ([]cove.FileInfo, bool, error) {
	return cove.ListPage(ctx, f.now(), dir, depth, skip, limit)
}

// Mkdir implements [cove.Files].
func (f files) Mkdir(ctx context.Context, name string) error { return f.now().Mkdir(ctx, name) }

// Move implements [cove.Files].
func (f files) Move(ctx context.Context, from, to string) error { return f.now().Move(ctx, from, to) }

// Remove implements [cove.Files].
func (f files) Remove(ctx context.Context, name string) error { return f.now().Remove(ctx, name) }

// Tag implements [cove.Files].
func (f files) Tag(ctx context.Context, name string, meta map[string]string) error {
	return f.now().Tag(ctx, name, meta)
}

// Archive implements [cove.Files].
func (f files) Archive(ctx context.Context, dir string) (io.ReadCloser, error) {
	return f.now().Archive(ctx, dir)
}

// Unpack implements [cove.Files].
func (f files) Unpack(ctx context.Context, dir string, tar io.Reader) error {
	return f.now().Unpack(ctx, dir, tar)
}

// Watch implements [cove.Files].
func (f files) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	return f.now().Watch(ctx, dir)
}

type ports struct {
	p  platform
	id cove.ID
}

// Dial implements [cove.Ports].
func (o ports) Dial(ctx context.Context, port int) (net.Conn, error) {
	return o.p.Platform.Ports(o.p.mem.now(o.id)).Dial(ctx, port)
}

type trials struct {
	p  platform
	id cove.ID
}

func (t trials) now() cove.Trials { return t.p.Platform.Trials(t.p.mem.now(t.id)) }

// Run implements [cove.Trials]. It is not made twice: what is on trial is a
// change to files, and those have gone with the session.
func (t trials) Run(ctx context.Context, req cove.TrialRequest) (*cove.TrialResult, error) {
	return t.now().Run(ctx, req)
}

// Get implements [cove.Trials].
func (t trials) Get(ctx context.Context) (*cove.TrialResult, error) { return t.now().Get(ctx) }

// Before implements [cove.Trials].
func (t trials) Before(ctx context.Context, name string) ([]byte, error) {
	return t.now().Before(ctx, name)
}

// Commit implements [cove.Trials].
func (t trials) Commit(ctx context.Context) error { return t.now().Commit(ctx) }

// Discard implements [cove.Trials].
func (t trials) Discard(ctx context.Context) error { return t.now().Discard(ctx) }
