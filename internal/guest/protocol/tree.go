package protocol

// Bounds on what is said of a file in a tree.
const (
	MaxAttr      = MaxRecord - 512 // the value of an attribute
	MaxAttrName  = 255             // Linux's own
	MaxAttrs     = 512 << 10       // names and values of one file
	MaxParts     = 16 << 10        // of one file that an agent sends
	MaxPartsIn   = 256 << 10       // of one file that an agent takes
	PartsPerPage = 2 << 10         // in one record
)

// Attr is an extended attribute of a file.
type Attr struct{ Name, Value string }

// Encode returns the payload of a record.
func (a Attr) Encode() []byte {
	var e Encoder
	e.Text(a.Name)
	e.Text(a.Value)
	return e.Bytes()
}

// DecodeAttr is the inverse of [Attr.Encode].
func DecodeAttr(b []byte) (Attr, error) {
	d := NewDecoder(b)
	a := Attr{Name: d.Text(MaxAttrName), Value: d.Text(MaxAttr)}
	return a, d.End()
}

// Part is a piece of a file that has content; what is between two is a hole.
type Part struct{ Offset, Length int64 }

// Parts are pieces of a file, in their order. The data that follows is that of
// all parts, one after the other. A file for which none are sent has no holes; one
// with a record of no parts is a hole.
type Parts []Part

// Encode returns the payload of a record, of at most PartsPerPage.
func (p Parts) Encode() []byte {
	var e Encoder
	e.Uint(uint64(len(p)))
	for _, one := range p {
		e.Int(one.Offset)
		e.Int(one.Length)
	}
	return e.Bytes()
}

// DecodeParts is the inverse of [Parts.Encode].
func DecodeParts(b []byte) (Parts, error) {
	d := NewDecoder(b)
	n := d.UpTo(PartsPerPage)
	p := make(Parts, 0, min(n, uint64(len(b))))
	for range n {
		p = append(p, Part{Offset: d.Int(), Length: d.Int()})
	}
	return p, d.End()
}

// Total returns how many bytes the parts of a file of some size have. It is false
// if they are not in order, or not in the file.
func (p Parts) Total(size int64) (total int64, ok bool) {
	at := int64(0)
	for _, one := range p {
		if one.Offset < at || one.Length < 0 || one.Offset > size || one.Length > size-one.Offset {
			return 0, false
		}
		at = one.Offset + one.Length
		total += one.Length
	}
	return total, true
}

// Write writes parts as records.
func (p Parts) Write(w *RecordWriter) error {
	for first := true; first || len(p) > 0; first = false {
		n := min(len(p), PartsPerPage)
		if err := w.Write(RecordParts, p[:n].Encode()); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}
