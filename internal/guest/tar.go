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
		_ = w.CloseWithError(pack(s, w))
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

// Unpack implements [cove.Files]. The host reads the archive, and the agent
// makes the tree. What came before a bad entry stays.
func (f files) Unpack(ctx context.Context, dir string, r io.Reader) error {
	return f.send(ctx, protocol.KindUnpack, dir, protocol.File{}, func(w *protocol.RecordWriter) error {
		in := tar.NewReader(&holeReader{r: r})
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
			if err := f.sendEntry(w, h, in); err != nil {
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
func (f files) sendEntry(w *protocol.RecordWriter, h *tar.Header, in io.Reader) error {
	whole := f.c.version >= protocol.Whole
	content, err := contentOf(h, in)
	if err != nil {
		return err
	}
	i, err := entryInfo(h, whole)
	if err != nil {
		return err
	}
	if i.Mode&unix.S_IFMT == unix.S_IFREG && !i.Hard {
		i.Size = content.size
	}
	if err := w.Write(protocol.RecordFile, i.Encode()); err != nil {
		return broken(err)
	}
	if whole && !i.Hard && i.Path != "." && (h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeDir) {
		if err := sendAttrs(w, h); err != nil {
			return err
		}
	}
	if i.Size == 0 {
		return nil
	}
	err = content.send(w, whole)
	var stream *protocol.WriteError
	if err != nil && !errors.As(err, &stream) {
		return archiveFault(err)
	}
	return err
}

// entryInfo says what an entry is. All bits of a mode are kept of what an archive
// of ours had; else the owner must be able to remove the file again.
func entryInfo(h *tar.Header, whole bool) (i protocol.Info, err error) {
	if i.Path, err = entryName(h.Name); err != nil {
		return i, err
	}
	i.Mode = uint32(h.Mode&0o777) | 0o600
	exact, ours, err := exactMode(h)
	if err != nil {
		return i, err
	}
	if !h.ModTime.IsZero() {
		i.Modified = h.ModTime.UnixNano()
	}
	switch {
	case h.Typeflag == tar.TypeDir:
		i.Mode |= unix.S_IFDIR | 0o100
	case h.Typeflag == tar.TypeReg, h.Typeflag == tar.TypeGNUSparse:
		i.Mode |= unix.S_IFREG
	case h.Typeflag == tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) >= protocol.MaxPath || strings.IndexByte(h.Linkname, 0) >= 0 {
			return i, cove.Errorf(cove.Invalid, "archive: the link %.200q points to nothing that has a name", h.Name)
		}
		i.Mode, i.Link = i.Mode|unix.S_IFLNK, h.Linkname
	case h.Typeflag == tar.TypeLink:
		if i.Link, err = entryName(h.Linkname); err != nil {
			return i, err
		}
		i.Mode, i.Hard = i.Mode|unix.S_IFREG, true
	case h.Typeflag == tar.TypeFifo && ours && whole:
		i.Mode |= unix.S_IFIFO
	default:
		return i, cove.Errorf(cove.Invalid, "archive: %.200q is neither a file, a directory nor a link", h.Name)
	}
	if ours && whole {
		i.Mode = i.Mode&unix.S_IFMT | exact
	}
	return i, nil
}

// entryName checks the name of an entry and makes it relative and clean.
func entryName(name string) (string, error) {
	if name == "" || len(name) >= protocol.MaxPath || path.IsAbs(name) || strings.IndexByte(name, 0) >= 0 || slices.Contains(strings.Split(name, "/"), "..") {
		return "", cove.Errorf(cove.Invalid, "archive: the name %.200q leaves the directory", name)
	}
	return path.Clean(name), nil
}
