//go:build linux

package guest

import (
	"archive/tar"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// packing makes a tar of the records of a tree.
type packing struct {
	s   *source
	out io.Writer // below w, for what w cannot write
	w   *tar.Writer

	next   *upcoming
	to     io.Writer // where the content of the entry goes
	left   int64     // of that content
	unfull int64     // zeros after it
}

// upcoming is an entry of which more may be said before its content.
type upcoming struct {
	protocol.Info

	attrs     map[string]string // as PAX records
	attrBytes int
	parts     protocol.Parts
	holes     bool
}

// pack writes the tree as a tar. A file that shrinks on the way is filled up
// with zeros, as tar(1) does it.
func pack(s *source, out io.Writer) error {
	p := &packing{s: s, out: out, w: tar.NewWriter(out)}
	for {
		kind, b, err := s.next()
		if errors.Is(err, io.EOF) {
			if err := p.end(); err != nil {
				return err
			}
			return p.w.Close()
		}
		if err == nil {
			err = p.take(kind, b)
		}
		if err != nil {
			return err
		}
	}
}

func (p *packing) nonsense(err error) error {
	return cove.Wrap(cove.Unavailable, err, "%.200q: the sandbox sent nonsense", p.s.name)
}

// take takes one record.
func (p *packing) take(kind protocol.RecordKind, b []byte) (err error) {
	switch {
	case kind == protocol.RecordData:
		if err := p.begin(); err != nil {
			return err
		}
		if p.left -= int64(len(b)); p.left < 0 || p.to == nil {
			return p.nonsense(nil)
		}
		_, err = p.to.Write(b)
		return err
	case kind == protocol.RecordFile:
		if err := p.end(); err != nil {
			return err
		}
		p.next = &upcoming{}
		p.next.Info, err = protocol.DecodeInfo(b)
	case p.next == nil:
		return p.nonsense(nil)
	case kind == protocol.RecordAttr:
		err = p.next.attr(b)
	case kind == protocol.RecordParts:
		err = p.next.addParts(b)
	default:
		return p.nonsense(nil)
	}
	if err != nil {
		return p.nonsense(err)
	}
	return nil
}

func (n *upcoming) addParts(b []byte) error {
	some, err := protocol.DecodeParts(b)
	if n.parts, n.holes = append(n.parts, some...), true; err != nil || len(n.parts) > protocol.MaxParts {
		return protocol.ErrMalformed
	}
	return nil
}

// begin writes the header of the entry, if that was not done.
func (p *packing) begin() error {
	if p.next == nil {
		return nil
	}
	n := p.next
	p.next, p.to = nil, p.w
	if n.holes && n.Mode&unix.S_IFMT == unix.S_IFREG && !n.Hard {
		return p.beginHoles(n)
	}
	h, err := header(n)
	if err != nil {
		return err
	}
	if err := p.w.WriteHeader(h); err != nil {
		// A name that PAX cannot hold may do in the older way.
		h.Format = tar.FormatGNU
		if err := p.w.WriteHeader(h); err != nil {
			return cove.Wrap(cove.Invalid, err, "archive: %.200q cannot be put into an archive", n.Path)
		}
	}
	p.left = h.Size
	return nil
}

// end completes the entry.
func (p *packing) end() error {
	if err := p.begin(); err != nil || p.to == nil {
		return err
	}
	_, err := io.CopyN(p.to, zeros{}, p.left)
	if err == nil {
		_, err = io.CopyN(p.out, zeros{}, p.unfull)
	}
	p.left, p.unfull, p.to = 0, 0, nil
	return err
}

// zeros is a reader of nothing but zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// header describes an entry.
func header(n *upcoming) (*tar.Header, error) {
	h := &tar.Header{Name: n.Path, Mode: int64(n.Mode & 0o777), ModTime: time.Unix(0, n.Modified), Format: tar.FormatPAX, PAXRecords: n.records()}
	switch {
	case n.Hard:
		h.Typeflag = tar.TypeLink
		var err error
		if h.Linkname, err = entryName(n.Link); err != nil {
			return nil, err
		}
	case n.Mode&unix.S_IFMT == unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, n.Path+"/"
	case n.Mode&unix.S_IFMT == unix.S_IFLNK:
		h.Typeflag, h.Linkname = tar.TypeSymlink, n.Link
	case n.Mode&unix.S_IFMT == unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	default:
		h.Typeflag, h.Size = tar.TypeReg, n.Size
	}
	return h, nil
}
