package duck

import (
	"unsafe"

	c "github.com/duckdb/duckdb-go-bindings"
)

// cells are the values of one column in one chunk, or those within such values.
type cells struct {
	*Shape
	data  unsafe.Pointer
	valid unsafe.Pointer // nil: all are
	kids  []cells
}

// bind makes the values of a vector readable while its chunk is there.
func (s *Shape) bind(v c.Vector) cells {
	out := cells{Shape: s, data: c.VectorGetData(v), valid: c.VectorGetValidity(v)}
	switch s.id { //nolint:exhaustive // All others have nothing within.
	case c.TypeList:
		out.kids = []cells{s.kids[0].bind(c.ListVectorGetChild(v))}
	case c.TypeArray:
		out.kids = []cells{s.kids[0].bind(c.ArrayVectorGetChild(v))}
	case c.TypeMap:
		pairs := c.ListVectorGetChild(v)
		for i, kid := range s.kids {
			out.kids = append(out.kids, kid.bind(c.StructVectorGetChild(pairs, c.IdxT(i))))
		}
	case c.TypeStruct:
		for i, kid := range s.kids {
			out.kids = append(out.kids, kid.bind(c.StructVectorGetChild(v, c.IdxT(i))))
		}
	case c.TypeUnion:
		// The first child is the tag.
		tags := &Shape{id: c.TypeUTinyInt}
		out.kids = append(out.kids, tags.bind(c.StructVectorGetChild(v, 0)))
		for i, kid := range s.kids {
			out.kids = append(out.kids, kid.bind(c.StructVectorGetChild(v, c.IdxT(i+1))))
		}
	default:
	}
	return out
}

// null reports whether the row has no value.
func (x *cells) null(row int) bool {
	if x.valid == nil {
		return false
	}
	word := *(*uint64)(unsafe.Add(x.valid, row/64*8))
	return word>>(row%64)&1 == 0
}

// at reads the value of a row. T has the size that the engine gives it.
func at[T any](x *cells, row int) T {
	var zero T
	return *(*T)(unsafe.Add(x.data, row*int(unsafe.Sizeof(zero))))
}

// inlined is how long a text may be that is kept beside its length.
const inlined = 12

// text is how the engine keeps one: its length, and either up to twelve bytes or
// four and a pointer.
type text struct {
	size  uint32
	bytes [inlined]byte
}

// bytes returns the row's text, which is there as long as the chunk.
func (x *cells) bytes(row int) []byte {
	t := (*text)(unsafe.Add(x.data, row*int(unsafe.Sizeof(text{}))))
	if t.size <= inlined {
		return t.bytes[:t.size]
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&t.bytes[4])), t.size) //nolint:gosec // The engine says how long it is.
}

// span is where the elements of a list are. The engine's numbers have no sign, and
// never need the bit of it.
type span struct{ start, size int }

// huge is an integer of 128 bits with a sign, and uhuge one without.
type (
	huge struct {
		low  uint64
		high int64
	}
	uhuge struct{ low, high uint64 }
)

// count is a number of the engine's that is one of things in memory.
func count(n c.IdxT) int { return int(n) } //nolint:gosec // There are never so many.

// interval is a length of time as the engine keeps it.
type interval struct {
	months, days int32
	micros       int64
}

// fixed returns the row's value as it is in memory, which is there as long as the
// chunk.
func (x *cells) fixed(row, size int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(x.data, row*size)), size) //nolint:gosec // The engine's values have that size.
}
