package protocol

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed is every error of decoding. Who sent such a message is broken or
// hostile, and the connection to him ends.
var ErrMalformed = errors.New("malformed message")

// Encoder appends values to a message. The zero value is ready.
type Encoder struct{ b []byte }

// Bytes returns what was encoded.
func (e *Encoder) Bytes() []byte { return e.b }

// Uint appends an unsigned number.
func (e *Encoder) Uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

// Int appends a signed number.
func (e *Encoder) Int(v int64) { e.b = binary.AppendUvarint(e.b, uint64(v)<<1^uint64(v>>63)) } //nolint:gosec // zigzag

// Bool appends a truth value.
func (e *Encoder) Bool(v bool) {
	var b byte
	if v {
		b = 1
	}
	e.b = append(e.b, b)
}

// Text appends a string of any bytes.
func (e *Encoder) Text(s string) {
	e.Uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

// List appends strings.
func (e *Encoder) List(list []string) {
	e.Uint(uint64(len(list)))
	for _, s := range list {
		e.Text(s)
	}
}

// Decoder takes values from a message. The first value that is not as it must
// be makes all that follow zero; [Decoder.End] then reports it.
type Decoder struct {
	b   []byte
	bad bool
}

// NewDecoder returns a decoder of b, which it does not change.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

func (d *Decoder) fail() {
	d.b, d.bad = nil, true
}

// End reports whether everything was well-formed and nothing is left.
func (d *Decoder) End() error {
	if d.bad || len(d.b) > 0 {
		return ErrMalformed
	}
	return nil
}

// Uint takes an unsigned number. A number has one encoding, the shortest.
func (d *Decoder) Uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || n > 1 && d.b[n-1] == 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// UpTo takes an unsigned number that is at most most.
func (d *Decoder) UpTo(most uint64) uint64 {
	v := d.Uint()
	if v > most {
		d.fail()
		return 0
	}
	return v
}

// Int takes a signed number.
func (d *Decoder) Int() int64 {
	v := d.Uint()
	return int64(v>>1) ^ -int64(v&1)
}

// Bool takes a truth value.
func (d *Decoder) Bool() bool { return d.Byte(1) == 1 }

// Byte takes one byte that is at most most.
func (d *Decoder) Byte(most byte) byte {
	if len(d.b) == 0 || d.b[0] > most {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// Text takes a string of at most most bytes.
func (d *Decoder) Text(most int) string {
	n := d.Uint()
	if n > uint64(most) || n > uint64(len(d.b)) { //nolint:gosec // most is a constant of ours
		d.fail()
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// List takes at most count strings of at most most bytes each.
func (d *Decoder) List(count, most int) []string {
	n := d.Uint()
	// A string takes a byte at least, so what is left bounds the allocation.
	if n > uint64(count) || n > uint64(len(d.b)) { //nolint:gosec // count is a constant of ours
		d.fail()
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.Text(most))
	}
	if d.bad {
		return nil
	}
	return list
}

// rest takes all that is left.
func (d *Decoder) rest() []byte {
	b := d.b
	d.b = nil
	return b
}
