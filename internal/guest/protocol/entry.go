package protocol

// Bounds on what is said of the attributes of a file outside of trees.
const (
	MaxTags     = 32      // attributes
	MaxTag      = 4 << 10 // the value of one
	MaxTagBytes = 8 << 10 // names and values together
)

// Entry describes a file in an answer: an [Info] with what trees have records for.
// An agent before version 5 sends the info alone.
type Entry struct {
	Info

	UID, GID int64 // -1: it did not say
	Attrs    []Attr
}

// Encode returns the payload of a record, or the body of a reply.
func (n Entry) Encode() []byte {
	e := Encoder{b: n.Info.Encode()}
	e.Int(n.UID)
	e.Int(n.GID)
	encodeAttrs(&e, n.Attrs)
	return e.Bytes()
}

// DecodeEntry is the inverse of [Entry.Encode], and takes an info alone.
func DecodeEntry(b []byte) (Entry, error) {
	d := NewDecoder(b)
	n := Entry{Info: decodeInfo(d), UID: -1, GID: -1}
	if len(d.b) == 0 {
		return n, d.End()
	}
	n.UID, n.GID = d.Int(), d.Int()
	if n.UID < -1 || n.GID < -1 || n.UID > 1<<32 || n.GID > 1<<32 {
		d.fail()
	}
	n.Attrs = decodeAttrs(d)
	return n, d.End()
}

// Tag asks for attributes of a file.
type Tag struct {
	Name  string
	Attrs []Attr
}

// Encode returns the body of a message.
func (t Tag) Encode() []byte {
	var e Encoder
	e.Text(t.Name)
	encodeAttrs(&e, t.Attrs)
	return e.Bytes()
}

// DecodeTag is the inverse of [Tag.Encode].
func DecodeTag(b []byte) (Tag, error) {
	d := NewDecoder(b)
	t := Tag{Name: d.Text(MaxPath), Attrs: decodeAttrs(d)}
	return t, d.End()
}

func encodeAttrs(e *Encoder, attrs []Attr) {
	e.Uint(uint64(len(attrs)))
	for _, a := range attrs {
		e.Text(a.Name)
		e.Text(a.Value)
	}
}

func decodeAttrs(d *Decoder) []Attr {
	var attrs []Attr
	total := 0
	for range d.UpTo(MaxTags) {
		a := Attr{Name: d.Text(MaxAttrName), Value: d.Text(MaxTag)}
		if total += len(a.Name) + len(a.Value); total > MaxTagBytes {
			d.fail()
			return nil
		}
		attrs = append(attrs, a)
	}
	return attrs
}
