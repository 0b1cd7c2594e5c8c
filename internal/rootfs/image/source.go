package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/cove-sandbox/cove"
)

// Bounds of what stands around the layers.
const (
	mostParts = 10_000  // files in an archive
	mostText  = 4 << 20 // of one description
	mostLinks = 8
)

// source is where the parts of an image are, by name.
type source interface {
	open(name string) (io.ReadCloser, error)
	close() error
}

// openSource opens the directory of a layout, or a tar.
func openSource(file string) (source, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, cove.Wrap(cove.NotFound, err, "the image %s cannot be opened", file)
	}
	if info.IsDir() {
		root, err := os.OpenRoot(file)
		if err != nil {
			return nil, cove.Wrap(cove.Unavailable, err, "the image %s cannot be opened", file)
		}
		return layoutDir{root}, nil
	}
	f, err := os.Open(file) //nolint:gosec // the operator named it
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the image %s cannot be opened", file)
	}
	a, err := readIndex(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

type layoutDir struct{ root *os.Root }

func (d layoutDir) close() error { return d.root.Close() }

func (d layoutDir) open(name string) (io.ReadCloser, error) {
	info, err := d.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a file", name)
	}
	return d.root.Open(name)
}

// archive is a tar on disk, whose parts can be read in any order.
type archive struct {
	file  *os.File
	parts map[string]part
}

// part is a file in an archive, or another name for one.
type part struct {
	from, size int64
	to         string
}

func (a *archive) close() error { return a.file.Close() }

func (a *archive) open(name string) (io.ReadCloser, error) {
	for range mostLinks {
		p, ok := a.parts[path.Clean(name)]
		if !ok {
			return nil, fs.ErrNotExist
		}
		if p.to == "" {
			return io.NopCloser(io.NewSectionReader(a.file, p.from, p.size)), nil
		}
		name = p.to
	}
	return nil, fmt.Errorf("%q leads in a circle", name)
}

// readIndex finds out where everything in an archive is. Two parts of one name are
// refused: which one is meant would depend on who reads.
func readIndex(f *os.File) (*archive, error) {
	a := &archive{file: f, parts: map[string]part{}}
	in := tar.NewReader(f)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, cove.Wrap(cove.Invalid, err, "the image is no archive that can be read").Remedy("use what docker save writes, unpacked if it was compressed, or an OCI layout")
		}
		if len(a.parts) >= mostParts {
			return nil, cove.Errorf(cove.Invalid, "the archive has more than %d parts", mostParts)
		}
		name := path.Clean(h.Name)
		var p part
		switch h.Typeflag {
		case tar.TypeReg:
			from, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				return nil, cove.Wrap(cove.Unavailable, err, "the archive cannot be read")
			}
			p = part{from: from, size: h.Size}
		case tar.TypeSymlink:
			p = part{to: path.Join(path.Dir(name), h.Linkname)} //nolint:gosec // a key of this map, and of no file
		case tar.TypeLink:
			p = part{to: path.Clean(h.Linkname)}
		default:
			continue
		}
		if _, twice := a.parts[name]; twice {
			return nil, cove.Errorf(cove.Invalid, "the archive has two parts with the name %.80q", name)
		}
		a.parts[name] = p
	}
}

// text reads a small part.
func text(s source, name string) ([]byte, error) {
	r, err := s.open(name)
	if err != nil {
		return nil, missing(name, err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, mostText+1))
	if err != nil {
		return nil, missing(name, err)
	}
	if len(data) > mostText {
		return nil, cove.Errorf(cove.Invalid, "the image's %.80q is too large to be a description", name)
	}
	return data, nil
}

func missing(name string, err error) error {
	return cove.Wrap(cove.Invalid, err, "the image lacks %.120q, or it cannot be read", name).Remedy("make the archive or the layout again")
}
