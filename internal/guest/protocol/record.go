package protocol

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// RecordKind says what a record of a stream is.
type RecordKind byte

// The kinds of records.
const (
	RecordData   RecordKind = iota + 1 // bytes of a file
	RecordFile                         // an [Info]; data that follows is its content
	RecordChange                       // a [Change]
	RecordEnd                          // the stream is complete
	RecordFailed                       // a [Reply]: the stream ends here, and this is why
	RecordAttr                         // an [Attr] of the file before; since version 3
	RecordParts                        // [Parts] of the file before; since version 3
	RecordErrs                         // bytes that a program wrote to stderr; since version 4
	RecordLost                         // [Lost]: what comes next was written later; since version 8
	lastRecord   = RecordLost
)

// MaxRecord bounds the payload of a record.
const MaxRecord = 64 << 10

// recordHead is the longest head of a record: its kind and its length.
const recordHead = 1 + 3

// RecordWriter writes records. Small ones are gathered until Flush.
type RecordWriter struct {
	w   *bufio.Writer
	buf []byte
}

// NewRecordWriter returns a writer of records to w.
func NewRecordWriter(w io.Writer) *RecordWriter {
	return &RecordWriter{w: bufio.NewWriterSize(w, MaxRecord+recordHead)}
}

// Write writes one record of at most MaxRecord bytes.
func (w *RecordWriter) Write(kind RecordKind, payload []byte) error {
	var head [recordHead]byte
	head[0] = byte(kind)
	n := binary.PutUvarint(head[1:], uint64(len(payload)))
	if _, err := w.w.Write(head[:1+n]); err != nil {
		return err
	}
	_, err := w.w.Write(payload)
	return err
}

// AppendRecord appends one record of at most MaxRecord bytes to b.
func AppendRecord(b []byte, kind RecordKind, payload []byte) []byte {
	b = binary.AppendUvarint(append(b, byte(kind)), uint64(len(payload)))
	return append(b, payload...)
}

// Copy copies r as records of data until it ends or most bytes are copied.
func (w *RecordWriter) Copy(r io.Reader, most int64) error {
	if w.buf == nil {
		w.buf = make([]byte, MaxRecord)
	}
	for most > 0 {
		n, err := r.Read(w.buf[:min(int64(len(w.buf)), most)])
		if n > 0 {
			most -= int64(n)
			if err := w.Write(RecordData, w.buf[:n]); err != nil {
				return &WriteError{err}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// WriteError is an error of the stream that was written to, as opposed to one
// of the source that was read.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return "stream: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// Flush sends what was gathered.
func (w *RecordWriter) Flush() error { return w.w.Flush() }

// End writes the last record and flushes.
func (w *RecordWriter) End() error {
	if err := w.Write(RecordEnd, nil); err != nil {
		return err
	}
	return w.Flush()
}

// Fail writes why the stream ends early, and flushes.
func (w *RecordWriter) Fail(r Reply) error {
	if err := w.Write(RecordFailed, r.Encode()); err != nil {
		return err
	}
	return w.Flush()
}

// RecordReader reads records of whoever writes them.
type RecordReader struct {
	r   *bufio.Reader
	buf []byte
}

// NewRecordReader returns a reader of the records in r.
func NewRecordReader(r io.Reader) *RecordReader {
	return &RecordReader{r: bufio.NewReaderSize(r, 16<<10)}
}

// Next returns the next record; its payload is good until the next call. The
// end of the bytes is [io.ErrUnexpectedEOF]: a stream ends with RecordEnd.
func (r *RecordReader) Next() (RecordKind, []byte, error) {
	kind, err := r.r.ReadByte()
	if err != nil {
		return 0, nil, unexpected(err)
	}
	n, err := binary.ReadUvarint(r.r)
	if err != nil {
		return 0, nil, unexpected(err)
	}
	if kind == 0 || kind > byte(lastRecord) || n > MaxRecord {
		return 0, nil, ErrMalformed
	}
	if uint64(cap(r.buf)) < n {
		r.buf = make([]byte, n, max(n, 4<<10))
	}
	if _, err := io.ReadFull(r.r, r.buf[:n]); err != nil {
		return 0, nil, unexpected(err)
	}
	return RecordKind(kind), r.buf[:n], nil
}

// Buffered reports whether bytes are at hand already.
func (r *RecordReader) Buffered() bool { return r.r.Buffered() > 0 }

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Lost is how much of a program's output was dropped in one place.
type Lost struct{ Stdout, Stderr uint64 }

// Encode returns the payload of a record.
func (l Lost) Encode() []byte {
	var e Encoder
	e.Uint(l.Stdout)
	e.Uint(l.Stderr)
	return e.Bytes()
}

// DecodeLost is the inverse of [Lost.Encode].
func DecodeLost(b []byte) (Lost, error) {
	d := NewDecoder(b)
	l := Lost{Stdout: d.UpTo(1 << 60), Stderr: d.UpTo(1 << 60)}
	return l, d.End()
}

// Info describes a file, in answers and in trees.
type Info struct {
	Path     string // in trees: relative
	Size     int64
	Mode     uint32 // as stat(2) gives it
	Modified int64  // nanoseconds
	Link     string // where a symbolic link points; in trees also a hard link's other name
	Hard     bool   // in trees: Link is another name of the same file
}

// Encode returns the payload of a record, or the body of a reply.
func (i Info) Encode() []byte {
	var e Encoder
	e.Text(i.Path)
	e.Int(i.Size)
	e.Uint(uint64(i.Mode))
	e.Int(i.Modified)
	e.Text(i.Link)
	e.Bool(i.Hard)
	return e.Bytes()
}

// DecodeInfo is the inverse of [Info.Encode].
func DecodeInfo(b []byte) (Info, error) {
	d := NewDecoder(b)
	i := decodeInfo(d)
	return i, d.End()
}

func decodeInfo(d *Decoder) Info {
	i := Info{Path: d.Text(2 * MaxPath), Size: d.Int(), Mode: uint32(d.UpTo(0xffff)), Modified: d.Int(), Link: d.Text(MaxPath), Hard: d.Bool()} //nolint:gosec // bounded
	if i.Size < 0 {
		d.fail()
	}
	return i
}

// ChangeKind is what happened to a file.
type ChangeKind byte

// What can happen to a file.
const (
	Created ChangeKind = iota + 1
	Modified
	Removed
	Overflow
	Moved      // to another name, or out of what is watched; since version 6, before that Removed
	Attributes // of a file or a directory; since version 6, before that Modified, for files
)

// Change is one thing that happened to a file.
type Change struct {
	Kind ChangeKind
	Path string
}

// Encode returns the payload of a record.
func (c Change) Encode() []byte {
	var e Encoder
	e.b = append(e.b, byte(c.Kind))
	e.Text(c.Path)
	return e.Bytes()
}

// DecodeChange is the inverse of [Change.Encode].
func DecodeChange(b []byte) (Change, error) {
	d := NewDecoder(b)
	c := Change{Kind: ChangeKind(d.Byte(byte(Attributes))), Path: d.Text(2 * MaxPath)}
	if c.Kind == 0 {
		d.fail()
	}
	return c, d.End()
}
