package client

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type files struct {
	c  *Client
	id cove.ID
}

// named is the query of a path. An empty one is sent too, to be refused.
func named(name string) url.Values { return url.Values{"path": {name}} }

// Stat implements [cove.Files].
func (f files) Stat(ctx context.Context, name string) (cove.FileInfo, error) {
	w, err := get[wire.File](ctx, f.c, ask{method: http.MethodGet, path: of(f.id, "/files/stat"), query: named(name)})
	if err != nil {
		return cove.FileInfo{}, err
	}
	return w.Cove(), nil
}

// Read implements [cove.Files].
func (f files) Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	query := named(name)
	query.Set("offset", strconv.FormatInt(offset, 10)) // also 0: who says where it reads need not be told the size
	if length != 0 {
		query.Set("length", strconv.FormatInt(length, 10))
	}
	return f.download(ctx, ask{method: http.MethodGet, path: of(f.id, "/files"), query: query, accept: asBytes})
}

// Archive implements [cove.Files].
func (f files) Archive(ctx context.Context, dir string) (io.ReadCloser, error) {
	return f.download(ctx, ask{method: http.MethodGet, path: of(f.id, "/archive"), query: named(dir), accept: "application/x-tar"})
}

func (f files) download(ctx context.Context, a ask) (io.ReadCloser, error) {
	resp, err := f.c.do(ctx, a) //nolint:bodyclose // the caller closes what it gets
	if err != nil {
		return nil, err
	}
	return &download{ReadCloser: resp.Body, fault: func(err error) error { return f.c.broken(ctx, err) }}, nil
}

// download is a body whose errors are ours.
type download struct {
	io.ReadCloser

	fault func(error) error
}

func (d *download) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = d.fault(err)
	}
	return n, err
}

// Write implements [cove.Files].
func (f files) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	return f.send(ctx, r, ask{
		method: http.MethodPut, path: of(f.id, "/files"), query: named(name),
		header: map[string]string{"Content-Type": asBytes, "X-File-Mode": wire.FormatMode(mode)},
	})
}

// Unpack implements [cove.Files].
func (f files) Unpack(ctx context.Context, dir string, tar io.Reader) error {
	return f.send(ctx, tar, ask{
		method: http.MethodPut, path: of(f.id, "/archive"), query: named(dir),
		header: map[string]string{"Content-Type": "application/x-tar"},
	})
}

func (f files) send(ctx context.Context, r io.Reader, a ask) error {
	if r == nil {
		return cove.InvalidField("body", "is missing")
	}
	up := newUpload(ctx, func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	})
	a.stream = up
	return up.blame(ctx, f.c.tell(ctx, a))
}

// List implements [cove.Files].
func (f files) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	query := named(dir)
	query.Set("depth", strconv.Itoa(depth))
	return feed(ctx, f.c, ask{method: http.MethodGet, path: of(f.id, "/files/list"), query: query}, wire.OnFile, wire.File.Cove)
}

var _ cove.FilePager = files{}

// ListPage implements [cove.FilePager].
func (f files) ListPage(ctx context.Context, dir string, depth, skip, limit int) ([]cove.FileInfo, bool, error) {
	query := named(dir)
	query.Set("depth", strconv.Itoa(depth))
	query.Set("limit", strconv.Itoa(limit))
	query.Set("cursor", strconv.Itoa(skip))
	p, err := get[wire.Page[wire.File]](ctx, f.c, ask{method: http.MethodGet, path: of(f.id, "/files/list"), query: query})
	if err != nil {
		return nil, false, err
	}
	list := make([]cove.FileInfo, len(p.Items))
	for i, w := range p.Items {
		list[i] = w.Cove()
	}
	return list, p.NextCursor != "", nil
}

// Mkdir implements [cove.Files].
func (f files) Mkdir(ctx context.Context, name string) error {
	return f.c.tell(ctx, ask{method: http.MethodPost, path: of(f.id, "/files/mkdir"), body: wire.MkdirRequestOf(name)})
}

// Move implements [cove.Files].
func (f files) Move(ctx context.Context, from, to string) error {
	return f.c.tell(ctx, ask{method: http.MethodPost, path: of(f.id, "/files/move"), body: wire.MoveRequestOf(from, to)})
}

// Remove implements [cove.Files].
func (f files) Remove(ctx context.Context, name string) error {
	return f.c.tell(ctx, ask{method: http.MethodDelete, path: of(f.id, "/files"), query: named(name)})
}

// Tag implements [cove.Files].
func (f files) Tag(ctx context.Context, name string, meta map[string]string) error {
	return f.c.tell(ctx, ask{method: http.MethodPost, path: of(f.id, "/files/tag"), body: wire.TagRequestOf(name, meta)})
}

// Watch implements [cove.Files].
func (f files) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	return feed(ctx, f.c, ask{method: http.MethodGet, path: of(f.id, "/files/watch"), query: named(dir)}, wire.OnChange, wire.Change.Cove)
}
