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

func (c *call) readFile() error {
	name := c.query.text("path")
	if spec := c.r.Header.Get("Range"); spec != "" && !c.query.has("offset") && !c.query.has("length") && c.r.Header.Get("If-Range") == "" {
		return c.readRange(name, spec)
	}
	body, err := c.files().Read(c.r.Context(), name, c.query.number("offset"), c.query.number("length"))
	if err != nil {
		return err
	}
	return c.download(http.StatusOK, octets, body)
}

func (c *call) readArchive() error {
	body, err := c.files().Archive(c.r.Context(), c.dir())
	if err != nil {
		return err
	}
	return c.download(http.StatusOK, tarType, body)
}

// readRange answers with the part of a file that a Range header names. A
// header of another form than one range of bytes counts as none.
func (c *call) readRange(name, spec string) error {
	info, err := c.files().Stat(c.r.Context(), name)
	if err != nil {
		return err
	}
	size := int64(info.Size)
	from, length, err := parseRange(spec, size)
	if err != nil {
		c.w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		return err
	}
	status := http.StatusOK
	if length > 0 {
		status = http.StatusPartialContent
		c.w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, size))
	}
	body, err := c.files().Read(c.r.Context(), name, from, length)
	if err != nil {
		c.w.Header().Del("Content-Range")
		return err
	}
	return c.download(status, octets, body)
}

// parseRange reads bytes=a-b, bytes=a- or bytes=-n for a file of a size. A
// length of 0 means the whole file.
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

// download answers with the bytes of body, a piece at a time. An error before
// the first piece is answered as such; one after it breaks the connection off.
func (c *call) download(status int, media string, body io.ReadCloser) error {
	defer body.Close() //nolint:errcheck // only read
	buf := make([]byte, 64<<10)
	for begun := false; ; {
		n, err := body.Read(buf)
		end := errors.Is(err, io.EOF)
		if err != nil && !end && !begun {
			return err
		}
		if !begun {
			begun = true
			h := c.w.Header()
			h.Set("Content-Type", media)
			// What comes out of a sandbox must never run in a browser as ours.
			h.Set("Content-Disposition", "attachment")
			h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
			c.w.WriteHeader(status)
		}
		if n > 0 {
			c.deadline()
			if _, err := c.w.Write(buf[:n]); err != nil {
				return cove.Wrap(cove.Canceled, err, "the client went away")
			}
		}
		if end {
			return nil
		}
		if err != nil {
			c.abort(err)
		}
	}
}
