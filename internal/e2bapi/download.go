package e2bapi

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
)

// readFile answers with the content of a file.
func (c *call) readFile() error {
	name := c.r.URL.Query().Get("path")
	if name == "" {
		return cove.InvalidField("path", "is missing")
	}
	name, err := inward(name)
	if err != nil {
		return err
	}
	return c.sendFile(name)
}

// sendFile answers with the content of a file of the sandbox.
func (c *call) sendFile(name string) error {
	content, size, err := c.openFile(c.r.Context(), name)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // only read
	return c.download(content, size)
}

// unknown is the size of what may change while it is read.
const unknown = -1

// openFile opens a file, and says how long it is, if it was the same before and after.
func (c *call) openFile(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	before, err := find(ctx, c.files(), name)
	switch {
	case err != nil:
		return nil, 0, err
	case before.Mode.IsDir():
		return nil, 0, cove.InvalidField("path", "%.200q is a directory", outward(name))
	}
	content, err := c.files().Read(ctx, name, 0, 0)
	if err != nil {
		return nil, 0, err
	}
	after, err := find(ctx, c.files(), name)
	if err != nil || after.Size != before.Size || after.Mode != before.Mode || !after.Modified.Equal(before.Modified) {
		return content, unknown, nil //nolint:nilerr // what was opened is still there to be read
	}
	return content, int64(before.Size), nil
}

// download sends content. What goes wrong before the first byte is an answer; what
// does afterwards breaks the connection off, so that nobody takes a part for the whole.
func (c *call) download(content io.Reader, size int64) error {
	in := bufio.NewReaderSize(content, 64<<10)
	if _, err := in.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if err != nil {
		size = 0
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	// What comes out of a sandbox must never run in a browser as ours.
	h.Set("Content-Disposition", "attachment")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	out := &patient{c}
	var err error
	switch {
	case size != 0 && wantsGzip(c.r.Header):
		h.Set("Content-Encoding", "gzip")
		c.w.WriteHeader(http.StatusOK)
		zip := gzip.NewWriter(out)
		if err = transfer(zip, in, size); err == nil {
			err = zip.Close()
		}
	default:
		if size != unknown {
			h.Set("Content-Length", strconv.FormatInt(size, 10))
		}
		c.w.WriteHeader(http.StatusOK)
		err = transfer(out, in, size)
	}
	if err != nil {
		c.told(c.r.Context(), "GET /files", err, 0)
		panic(http.ErrAbortHandler) //nolint:forbidigo // the server's own way to break a connection off
	}
	return nil
}

// transfer copies as many bytes as there are to be, or all of them.
func transfer(w io.Writer, r io.Reader, size int64) error {
	if size == unknown {
		_, err := io.Copy(w, r)
		return err
	}
	n, err := io.CopyN(w, r, size)
	if errors.Is(err, io.EOF) {
		return cove.Errorf(cove.Unavailable, "the file got shorter while it was read: %d of %d bytes", n, size)
	}
	return err
}

// patient writes to a client that takes what it asked for before too long.
type patient struct{ c *call }

// Write implements [io.Writer].
func (p *patient) Write(b []byte) (int, error) {
	_ = p.c.control().SetWriteDeadline(time.Now().Add(p.c.h.cfg.Stall))
	if cause := context.Cause(p.c.r.Context()); cause != nil {
		return 0, cause
	}
	return p.c.w.Write(b)
}
