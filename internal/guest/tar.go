//go:build linux

package guest

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// maxEntries bounds an archive that is unpacked.
const maxEntries = 1 << 20

// Archive implements [cove.Files]. The agent sends the tree, and the host makes
// it an archive.
func (f files) Archive(ctx context.Context, dir string) (io.ReadCloser, error) {
	s, err := f.open(ctx, protocol.KindArchive, dir, protocol.File{})
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.close()
		_ = w.CloseWithError(s.pack(tar.NewWriter(w)))
	}()
	return &archive{PipeReader: r, s: s, done: done}, nil
}

// archive is a tar on its way to the caller.
type archive struct {
	*io.PipeReader

	s    *source
	done chan struct{}
}

// Close ends the stream, and waits until nothing of it is left.
func (a *archive) Close() error {
	_ = a.PipeReader.Close()
	a.s.interrupt()
	<-a.done
	return nil
}

// pack writes the tree as a tar. A file that shrinks on the way is filled up
// with zeros, as tar(1) does it.
func (s *source) pack(w *tar.Writer) error {
	left := int64(0)
	for {
		kind, b, err := s.next()
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		if !end && kind == protocol.RecordData {
			if left -= int64(len(b)); left < 0 {
				return cove.Errorf(cove.Unavailable, "%.200q: the sandbox sent nonsense", s.name)
			}
			if _, err := w.Write(b); err != nil {
				return err
			}
			continue
		}
		if _, err := io.CopyN(w, zeros{}, left); err != nil {
			return err
		}
		if end {
			return w.Close()
		}
		i, err := protocol.DecodeInfo(b)
		if err != nil || kind != protocol.RecordFile {
			return cove.Wrap(cove.Unavailable, err, "%.200q: the sandbox sent nonsense", s.name)
		}
		if left, err = writeHeader(w, i); err != nil {
			return err
		}
	}
}

// zeros is a reader of nothing but zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// writeHeader begins an entry, and returns how many bytes belong to it.
func writeHeader(w *tar.Writer, i protocol.Info) (int64, error) {
	h := &tar.Header{Name: i.Path, Mode: int64(i.Mode & 0o777), ModTime: time.Unix(0, i.Modified), Format: tar.FormatPAX}
	switch i.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, i.Path+"/"
	case unix.S_IFLNK:
		h.Typeflag, h.Linkname = tar.TypeSymlink, i.Link
	default:
		h.Typeflag, h.Size = tar.TypeReg, i.Size
	}
	if err := w.WriteHeader(h); err != nil {
		// A name that PAX cannot hold may do in the older way.
		h.Format = tar.FormatGNU
		if err := w.WriteHeader(h); err != nil {
			return 0, cove.Wrap(cove.Invalid, err, "archive: %.200q cannot be put into an archive", i.Path)
		}
	}
	return h.Size, nil
}

// Unpack implements [cove.Files]. The host reads the archive, and the agent
// makes the tree. What came before a bad entry stays.
func (f files) Unpack(ctx context.Context, dir string, r io.Reader) error {
	return f.send(ctx, protocol.KindUnpack, dir, protocol.File{}, func(w *protocol.RecordWriter) error {
		in := tar.NewReader(r)
		for range maxEntries {
			if err := ctx.Err(); err != nil {
				return err
			}
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return archiveFault(err)
			}
			if err := sendEntry(w, h, in); err != nil {
				return err
			}
		}
		return cove.Errorf(cove.Invalid, "archive: it has more than %d entries", maxEntries)
	})
}

func archiveFault(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return cove.Wrap(cove.Invalid, err, "archive: it is cut short; send it again")
	}
	if code := cove.CodeOf(err); code != cove.Internal {
		return err
	}
	return cove.Wrap(cove.Invalid, err, "archive: this is not a tar stream")
}

// sendEntry checks one entry and sends it.
func sendEntry(w *protocol.RecordWriter, h *tar.Header, in io.Reader) error {
	name, err := entryName(h.Name)
	if err != nil {
		return err
	}
	i := protocol.Info{Path: name, Mode: uint32(h.Mode&0o777) | 0o600}
	if !h.ModTime.IsZero() {
		i.Modified = h.ModTime.UnixNano()
	}
	switch h.Typeflag {
	case tar.TypeDir:
		i.Mode |= unix.S_IFDIR | 0o100
	case tar.TypeReg:
		i.Mode |= unix.S_IFREG
		i.Size = h.Size
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) >= protocol.MaxPath || strings.IndexByte(h.Linkname, 0) >= 0 {
			return cove.Errorf(cove.Invalid, "archive: the link %.200q points to nothing that has a name", h.Name)
		}
		i.Mode, i.Link = i.Mode|unix.S_IFLNK, h.Linkname
	case tar.TypeLink:
		if i.Link, err = entryName(h.Linkname); err != nil {
			return err
		}
		i.Mode, i.Hard = i.Mode|unix.S_IFREG, true
	default:
		return cove.Errorf(cove.Invalid, "archive: %.200q is neither a file, a directory nor a link", h.Name)
	}
	if err := w.Write(protocol.RecordFile, i.Encode()); err != nil {
		return broken(err)
	}
	if i.Size == 0 {
		return nil
	}
	err = w.Copy(in, i.Size)
	var stream *protocol.WriteError
	if err != nil && !errors.As(err, &stream) {
		return archiveFault(err)
	}
	return err
}

// entryName checks the name of an entry and makes it relative and clean.
func entryName(name string) (string, error) {
	if name == "" || len(name) >= protocol.MaxPath || path.IsAbs(name) || strings.IndexByte(name, 0) >= 0 || slices.Contains(strings.Split(name, "/"), "..") {
		return "", cove.Errorf(cove.Invalid, "archive: the name %.200q leaves the directory", name)
	}
	return path.Clean(name), nil
}
