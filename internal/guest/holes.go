//go:build linux

package guest

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Files with holes are in an archive as GNU tar writes them (PAX format 1.0): the
// name and the size are in PAX records, and before the content comes a list of
// the parts that are no holes. Package archive/tar reads that, but makes zeros of
// the holes, and does not write it. So both is done here.
const (
	tarBlock    = 512
	sparse      = "GNU.sparse."
	sparseOurs  = "COV.sparse." // as long as the other: what holeReader makes of it
	sparseMajor = "major"
	sparseMinor = "minor"
	sparseName  = "name"
	sparseSize  = "realsize"
	maxPAX      = 1 << 20 // what archive/tar reads of records, or of a list of parts
	maxOctal    = 1<<33 - 1
)

func padding(n int64) int64 { return -n & (tarBlock - 1) }

// beginHoles writes the header of a file with holes, and the list of its parts.
func (p *packing) beginHoles(n *upcoming) error {
	total, ok := n.parts.Total(n.Size)
	if !ok {
		return p.nonsense(nil)
	}
	list := partList(n.parts, n.Size)
	size := int64(len(list)) + total
	records := map[string]string{
		sparse + sparseMajor: "1", sparse + sparseMinor: "0", sparse + sparseName: n.Path,
		sparse + sparseSize: strconv.FormatInt(n.Size, 10), "mtime": paxTime(n.Modified),
	}
	if size > maxOctal {
		records["size"] = strconv.FormatInt(size, 10)
	}
	maps.Copy(records, n.records())
	var pax []byte
	for _, key := range slices.Sorted(maps.Keys(records)) {
		pax = append(pax, paxRecord(key, records[key])...)
	}
	if len(pax) > maxPAX {
		return cove.Errorf(cove.Invalid, "archive: %.200q cannot be put into an archive", n.Path)
	}
	if err := p.w.Flush(); err != nil {
		return err
	}
	head := block("PaxHeaders.0/sparse", tar.TypeXHeader, 0o644, int64(len(pax)))
	head = append(head, pax...)
	head = append(head, make([]byte, padding(int64(len(pax))))...)
	head = append(head, block("GNUSparseFile.0/"+plainName(n.Path), tar.TypeReg, n.Mode&0o777, min(size, maxOctal))...)
	if _, err := p.out.Write(append(head, list...)); err != nil {
		return err
	}
	p.to, p.left, p.unfull = p.out, total, padding(size)
	return nil
}

// partList is the list of parts, filled up to whole blocks. Its last entry is at
// the end of the file.
func partList(parts protocol.Parts, size int64) []byte {
	if n := len(parts); n == 0 || parts[n-1].Offset+parts[n-1].Length < size {
		parts = append(parts[:n:n], protocol.Part{Offset: size})
	}
	list := fmt.Appendf(nil, "%d\n", len(parts))
	for _, one := range parts {
		list = fmt.Appendf(list, "%d\n%d\n", one.Offset, one.Length)
	}
	return append(list, make([]byte, padding(int64(len(list))))...)
}

// plainName is a name for programs that know nothing of holes.
func plainName(name string) string {
	const most = 80
	name = path.Base(name)
	if len(name) > most || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "file"
	}
	return name
}

// paxTime is a time in a PAX record.
func paxTime(nanos int64) string {
	const second = 1e9
	sign, abs := "", uint64(nanos) //nolint:gosec // the sign is looked at
	if nanos < 0 {
		sign, abs = "-", -abs
	}
	return fmt.Sprintf("%s%d.%09d", sign, abs/second, abs%second)
}

// paxRecord is one PAX record, which begins with its own length.
func paxRecord(key, value string) string {
	const around = len(" =\n")
	n := len(key) + len(value) + around
	size := n + len(strconv.Itoa(n))
	if n+len(strconv.Itoa(size)) != size {
		size = n + len(strconv.Itoa(size))
	}
	return strconv.Itoa(size) + " " + key + "=" + value + "\n"
}

// block is the header of an entry.
func block(name string, kind byte, mode uint32, size int64) []byte {
	b := make([]byte, tarBlock)
	copy(b, name)
	copy(b[100:], fmt.Sprintf("%07o", mode))
	copy(b[108:], "0000000")
	copy(b[116:], "0000000")
	copy(b[124:], fmt.Sprintf("%011o", size))
	copy(b[136:], "00000000000")
	copy(b[148:], "        ")
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// entryContent is what is in a file of an archive.
type entryContent struct {
	in    io.Reader
	size  int64
	parts protocol.Parts
	holes bool
}

// contentOf returns what is in a file. One with holes also gets its name.
func contentOf(h *tar.Header, in io.Reader) (*entryContent, error) {
	c := &entryContent{in: in, size: h.Size}
	if h.Typeflag != tar.TypeReg || h.PAXRecords[sparseOurs+sparseMajor] == "" {
		return c, nil
	}
	bad := func(err error) error {
		if _, ours := errors.AsType[*cove.Error](err); ours {
			return err // the source of the archive says it
		}
		return cove.Wrap(cove.Invalid, err, "archive: the holes of %.200q are not described as they must be", h.Name)
	}
	if name := h.PAXRecords[sparseOurs+sparseName]; name != "" {
		h.Name = name
	}
	var err error
	if c.size, err = strconv.ParseInt(h.PAXRecords[sparseOurs+sparseSize], 10, 64); err != nil || c.size < 0 {
		return nil, bad(err)
	}
	c.holes = true
	var taken int64
	if c.parts, taken, err = readParts(in); err != nil {
		return nil, bad(err)
	}
	if total, ok := c.parts.Total(c.size); !ok || taken+total != h.Size {
		return nil, bad(nil)
	}
	return c, nil
}

// readParts reads a list of parts, and returns how many bytes it had.
func readParts(in io.Reader) (parts protocol.Parts, taken int64, err error) {
	list := &blocks{r: io.LimitReader(in, maxPAX)}
	r := bufio.NewReaderSize(list, tarBlock) // asks for no more than a block
	number := func() (int64, error) {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(string(line[:len(line)-1]), 10, 64)
	}
	count, err := number()
	if err == nil && (count < 0 || count > protocol.MaxPartsIn) {
		err = protocol.ErrMalformed
	}
	for ; err == nil && count > 0; count-- {
		var one protocol.Part
		if one.Offset, err = number(); err == nil {
			one.Length, err = number()
		}
		if err == nil && one.Length != 0 {
			parts = append(parts, one)
		}
	}
	return parts, list.n, err
}

// blocks reads whole blocks, one at a time.
type blocks struct {
	r io.Reader
	n int64
}

func (b *blocks) Read(p []byte) (int, error) {
	if len(p) < tarBlock {
		return 0, io.ErrShortBuffer
	}
	n, err := io.ReadFull(b.r, p[:tarBlock])
	b.n += int64(n)
	return n, err
}

// send sends the content. An agent that knows no holes gets zeros.
func (c *entryContent) send(w *protocol.RecordWriter, whole bool) error {
	if !c.holes {
		return w.Copy(c.in, c.size)
	}
	if whole {
		if err := c.parts.Write(w); err != nil {
			return broken(err)
		}
		total, _ := c.parts.Total(c.size)
		return w.Copy(c.in, total)
	}
	at := int64(0)
	for _, one := range append(c.parts, protocol.Part{Offset: c.size}) {
		if err := w.Copy(zeros{}, one.Offset-at); err != nil {
			return err
		}
		if err := w.Copy(c.in, one.Length); err != nil {
			return err
		}
		at = one.Offset + one.Length
	}
	return nil
}
