//go:build linux

package guest

import (
	"archive/tar"
	"bytes"
	"io"
	"strconv"
	"strings"
)

// holeReader is a tar stream in which files with holes look like others to
// archive/tar, which would make zeros of the holes: the names of their PAX records
// are changed. What it does not understand it leaves as it is, up to the end: who
// reads the tar says what is wrong with it.
type holeReader struct {
	r    io.Reader
	buf  []byte // to be read first
	pass int64  // bytes up to the next header
	over bool   // there are no more headers to look at
	err  error  // after buf

	size int64 // of the next entry, if PAX says it
}

// Read implements [io.Reader].
func (h *holeReader) Read(p []byte) (int, error) {
	for len(h.buf) == 0 && h.err == nil && h.pass == 0 && !h.over {
		h.header()
	}
	switch {
	case len(h.buf) > 0:
		n := copy(p, h.buf)
		h.buf = h.buf[n:]
		return n, nil
	case h.err != nil:
		return 0, h.err
	case h.over:
		return h.r.Read(p)
	}
	n, err := h.r.Read(p[:min(int64(len(p)), h.pass)])
	h.pass -= int64(n)
	return n, err
}

// take reads n bytes more.
func (h *holeReader) take(n int64) []byte {
	b := make([]byte, n)
	got, err := io.ReadFull(h.r, b)
	if err != nil {
		h.over, h.err = true, err
	}
	h.buf = append(h.buf, b[:got]...)
	return b[:got]
}

// header looks at one header.
func (h *holeReader) header() {
	b := h.take(tarBlock)
	if h.err != nil {
		return
	}
	size, ok := tarNumber(b[124:136])
	if !ok || b[156] == tar.TypeGNUSparse || bytes.Count(b, []byte{0}) == tarBlock {
		h.over = true
		return
	}
	switch kind := b[156]; kind {
	case tar.TypeXHeader:
		if size > maxPAX {
			h.over = true
			return
		}
		h.take(size + padding(size))
		if h.err == nil {
			h.size = h.records(h.buf[tarBlock : tarBlock+size])
		}
		return
	case tar.TypeXGlobalHeader, tar.TypeGNULongName, tar.TypeGNULongLink:
		h.pass = size + padding(size)
		return
	case tar.TypeLink, tar.TypeSymlink, tar.TypeChar, tar.TypeBlock, tar.TypeDir, tar.TypeFifo:
		size = 0
	default:
		if h.size > 0 {
			size = h.size
		}
	}
	h.pass, h.size = size+padding(size), 0
}

// records changes PAX records in their place, and returns the size that they give
// the entry, or 0.
func (h *holeReader) records(b []byte) (size int64) {
	var major, minor string
	var keys [][]byte
	for rest := b; len(rest) > 0; {
		digits, _, ok := bytes.Cut(rest, []byte(" "))
		n, err := strconv.Atoi(string(digits))
		if !ok || err != nil || n <= len(digits)+1 || n > len(rest) {
			return 0
		}
		key, value, _ := bytes.Cut(rest[len(digits)+1:n-1], []byte("="))
		switch name := string(key); {
		case name == "size":
			size, _ = strconv.ParseInt(string(value), 10, 62)
		case name == sparse+sparseMajor:
			major = string(value)
		case name == sparse+sparseMinor:
			minor = string(value)
		}
		if strings.HasPrefix(string(key), sparse) {
			keys = append(keys, key)
		}
		rest = rest[n:]
	}
	if major == "1" && minor == "0" {
		for _, key := range keys {
			copy(key, sparseOurs)
		}
	}
	return max(size, 0)
}

// tarNumber reads a number of a header.
func tarNumber(b []byte) (int64, bool) {
	if b[0]&0x80 == 0 {
		text := strings.Trim(string(b), " \x00")
		if text == "" {
			return 0, true
		}
		n, err := strconv.ParseInt(text, 8, 62)
		return n, err == nil && n >= 0
	}
	n := int64(0)
	for i, c := range b {
		if i == 0 {
			c &= 0x7f
		}
		if n >= 1<<53 {
			return 0, false
		}
		n = n<<8 | int64(c)
	}
	return n, true
}
