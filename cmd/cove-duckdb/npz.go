//go:build linux

package main

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// npz writes arrays as NumPy keeps them: an archive that is not compressed, with a
// file for each.
type npz struct{ zip *zip.Writer }

func newNpz(w io.Writer) *npz { return &npz{zip: zip.NewWriter(w)} }

func (n *npz) close() error { return n.zip.Close() }

// array writes one of a length and a type, in NumPy's words.
func (n *npz) array(name, kind string, length int, data []byte) error {
	w, err := n.zip.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		return err
	}
	const before = 10 // what comes before the description
	about := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", kind, length)
	about += strings.Repeat(" ", 63-(before+len(about))%64) + "\n"                            // the data begin at a round place
	head := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(about))) //nolint:gosec // It is short.
	if _, err := w.Write(append(head, about...)); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// mark says that a value was appended, and whether it was one.
func (c *frameColumn) mark(there bool) {
	c.null = append(c.null, 0)
	if !there {
		c.null[len(c.null)-1] = 1
		c.nulls = true
	}
	if c.form.Type == "" {
		c.ends = binary.LittleEndian.AppendUint64(c.ends, uint64(len(c.data)))
	}
}

// end is where the last value ends.
func (c *frameColumn) end() int {
	if len(c.ends) == 0 {
		return 0
	}
	return int(binary.LittleEndian.Uint64(c.ends[len(c.ends)-8:])) //nolint:gosec // It was a length.
}

// write writes what is kept of the column, and keeps nothing.
func (c *frameColumn) write(to *npz, prefix string) error {
	rows, kind, length := len(c.null), c.form.Type, len(c.null)
	if kind == "" {
		kind, length = "|u1", len(c.data)
		if err := to.array(prefix+"ends", "<i8", rows, c.ends); err != nil {
			return err
		}
	}
	if err := to.array(prefix+"data", kind, length, c.data); err != nil {
		return err
	}
	if c.nulls {
		if err := to.array(prefix+"null", "|b1", rows, c.null); err != nil {
			return err
		}
	}
	c.data, c.ends, c.null, c.nulls = c.data[:0], c.ends[:0], c.null[:0], false
	return nil
}
