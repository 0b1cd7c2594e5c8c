package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

const tarType = "application/x-tar"

// readFile answers with a file or a part of it. A file whose size is known has
// Content-Length. One that changes while it is opened, whose name is a link, or
// of which the query names a part, comes without, and ends where it ends.
func (c *call) readFile() error {
	name := c.query.text("path")
	if c.query.has("offset") || c.query.has("length") {
		return c.readUntilEnd(name, c.query.number("offset"), c.query.number("length"))
	}
	before, err := c.files().Stat(c.r.Context(), name)
	if err != nil || !before.Mode.IsRegular() {
		return c.readUntilEnd(name, 0, 0) // which has an error of its own
	}
	c.w.Header().Set("Accept-Ranges", "bytes")
	if spec := c.r.Header.Get("Range"); spec != "" && c.r.Header.Get("If-Range") == "" {
		from, length, err := parseRange(spec, int64(before.Size))
		if err != nil {
			c.w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", before.Size))
			return err
		}
		if length > 0 {
			return c.readPart(name, from, length, int64(before.Size))
		}
	}
	body, err := c.files().Read(c.r.Context(), name, 0, 0)
	if err != nil {
		return err
	}
	after, err := c.files().Stat(c.r.Context(), name)
	if err != nil || !sameFile(before, after) {
		return c.download(http.StatusOK, octets, body, unknown) // what was opened is still there to be read
	}
	return c.download(http.StatusOK, octets, body, int64(before.Size))
}

// readUntilEnd answers with what is there to be read.
func (c *call) readUntilEnd(name string, offset, length int64) error {
	body, err := c.files().Read(c.r.Context(), name, offset, length)
	if err != nil {
		return err
	}
	return c.download(http.StatusOK, octets, body, unknown)
}

// headFile answers what readFile would say about a whole file, without reading it.
func (c *call) headFile() error {
	info, err := c.files().Stat(c.r.Context(), c.query.text("path"))
	if err != nil {
		return err
	}
	if info.Mode.IsDir() {
		return cove.Errorf(cove.Invalid, "%.200q is a directory; …/files/stat describes it", info.Path)
	}
	h := c.w.Header()
	h.Set("Accept-Ranges", "bytes")
	if info.Mode.IsRegular() {
		h.Set("Content-Length", strconv.FormatInt(int64(info.Size), 10))
	}
	c.attach(octets)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

func (c *call) readArchive() error {
	body, err := c.files().Archive(c.r.Context(), c.dir())
	if err != nil {
		return err
	}
	return c.download(http.StatusOK, tarType, body, unknown)
}

// sameFile reports whether a file is as it was. One without a byte tells nothing
// by its size: what the kernel makes up has none either.
func sameFile(a, b cove.FileInfo) bool {
	return a.Size > 0 && a.Size == b.Size && a.Mode == b.Mode && a.Modified.Equal(b.Modified)
}

// readPart answers with a part of a file of a size.
func (c *call) readPart(name string, from, length, size int64) error {
	body, err := c.files().Read(c.r.Context(), name, from, length)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, size))
	return c.download(http.StatusPartialContent, octets, body, length)
}

// parseRange reads bytes=a-b, bytes=a- or bytes=-n for a file of a size. A
// header of another form counts as none: a length of 0 means the whole file.
func parseRange(spec string, size int64) (from, length int64, err error) {
	unit, spans, _ := strings.Cut(spec, "=")
	first, last, ok := strings.Cut(spans, "-")
	if unit != "bytes" || !ok || strings.Contains(spans, ",") {
		return 0, 0, nil
	}
	outside := cove.Errorf(cove.Invalid, "the range is outside of the file, which has %d bytes", size).Reason(reasonNoRange)
	if first == "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return 0, 0, nil //nolint:nilerr // not a range that we know
		}
		if n = min(n, size); n <= 0 {
			return 0, 0, outside
		}
		return size - n, n, nil
	}
	a, err := strconv.ParseInt(first, 10, 64)
	b := size - 1
	if err == nil && last != "" {
		b, err = strconv.ParseInt(last, 10, 64)
	}
	if err != nil || a < 0 || b < a && last != "" {
		return 0, 0, nil //nolint:nilerr // not a range that we know
	}
	if a >= size {
		return 0, 0, outside
	}
	return a, min(b, size-1) - a + 1, nil
}

// unknown is the size of a download that nobody knows yet.
const unknown = -1

// attach says what an answer is. What comes out of a sandbox must never run in
// a browser as ours.
func (c *call) attach(media string) {
	h := c.w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Disposition", "attachment")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
}

// download answers with the bytes of body, a piece at a time, and no more than
// size. An error before the first piece is answered as such; one after it, or an
// end before size, breaks the connection off.
func (c *call) download(status int, media string, body io.ReadCloser, size int64) error {
	defer body.Close() //nolint:errcheck // only read
	var src io.Reader = body
	if size != unknown {
		src = io.LimitReader(body, size)
	}
	buf := make([]byte, 64<<10)
	for begun, sent := false, int64(0); ; {
		n, err := src.Read(buf)
		if cause := cutOff(c.r.Context()); cause != nil {
			n, err = 0, cause
		}
		end := errors.Is(err, io.EOF)
		if err != nil && !end && !begun {
			c.w.Header().Del("Content-Range")
			return err
		}
		if !begun {
			begun = true
			c.attach(media)
			if size != unknown {
				c.w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
			}
			c.w.WriteHeader(status)
		}
		if sent += int64(n); n > 0 {
			c.deadline()
			if _, err := c.w.Write(buf[:n]); err != nil {
				return cove.Wrap(cove.Canceled, err, "the client went away")
			}
		}
		switch {
		case end && size != unknown && sent < size:
			c.abort(cove.Errorf(cove.Unavailable, "the file got shorter while it was read; read it again"))
		case end:
			return nil
		case err != nil:
			c.abort(err)
		}
	}
}
