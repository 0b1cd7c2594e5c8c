package e2bapi

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/cove-sandbox/cove"
)

// plain returns what a client uploads as it was before it was compressed. How much it
// becomes is bounded by whoever reads it.
func plain(header http.Header, r io.Reader) (io.Reader, error) {
	switch coding := strings.ToLower(strings.Join(header.Values("Content-Encoding"), ",")); coding {
	case "", "identity":
		return r, nil
	case "gzip":
		return &unzipped{from: r}, nil
	default:
		return nil, cove.InvalidField("Content-Encoding", "%q is not understood; use gzip, or none", clip(coding))
	}
}

// unzipped is a body that is decompressed as it is read.
type unzipped struct {
	from io.Reader
	gz   *gzip.Reader
}

// Read implements [io.Reader].
func (u *unzipped) Read(p []byte) (n int, err error) {
	if u.gz == nil {
		u.gz, err = gzip.NewReader(u.from)
	}
	if err == nil {
		n, err = u.gz.Read(p)
	}
	if err == nil || u.gz != nil && err == io.EOF { //nolint:errorlint // the reader's own end, not one within
		return n, err
	}
	if _, ours := errors.AsType[*cove.Error](err); ours {
		return n, err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the end of the body is not that of what is in it
	}
	return n, cove.Wrap(cove.Invalid, err, "the body is not what gzip writes, or ends too soon").Remedy("send it again")
}

// wantsGzip reports whether a client wants gzip and nothing else, which is how those
// that were told to want it ask.
func wantsGzip(header http.Header) bool {
	return strings.EqualFold(strings.TrimSpace(header.Get("Accept-Encoding")), "gzip")
}
