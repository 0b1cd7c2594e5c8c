package duck

import (
	"encoding/binary"
	"math"
	"strconv"

	c "github.com/duckdb/duckdb-go-bindings"
)

// Form is how the values of a column are written for NumPy.
type Form struct {
	Kind string // see the package ask
	// Type is NumPy's name for values of one size. The others have none.
	Type string
	size int
}

// forms are the types whose values have one size and are kept as the engine keeps
// them.
var forms = map[c.Type]Form{
	c.TypeBoolean:     {"number", "|b1", 1},
	c.TypeTinyInt:     {"number", "|i1", 1},
	c.TypeSmallInt:    {"number", "<i2", 2},
	c.TypeInteger:     {"number", "<i4", 4},
	c.TypeBigInt:      {"number", "<i8", 8},
	c.TypeUTinyInt:    {"number", "|u1", 1},
	c.TypeUSmallInt:   {"number", "<u2", 2},
	c.TypeUInteger:    {"number", "<u4", 4},
	c.TypeUBigInt:     {"number", "<u8", 8},
	c.TypeFloat:       {"number", "<f4", 4},
	c.TypeDouble:      {"number", "<f8", 8},
	c.TypeDate:        {"time", "<M8[D]", 8},
	c.TypeTimestampS:  {"time", "<M8[s]", 8},
	c.TypeTimestampMS: {"time", "<M8[ms]", 8},
	c.TypeTimestamp:   {"time", "<M8[us]", 8},
	c.TypeTimestampNS: {"time", "<M8[ns]", 8},
	c.TypeTimestampTZ: {"zoned", "<M8[us]", 8},
	c.TypeHugeInt:     {Kind: "integer"},
	c.TypeUHugeInt:    {Kind: "integer"},
	c.TypeBlob:        {Kind: "bytes"},
	c.TypeVarchar:     {Kind: "text"},
	c.TypeEnum:        {Kind: "text"},
	c.TypeUUID:        {Kind: "text"},
	c.TypeBit:         {Kind: "text"},
	c.TypeTime:        {Kind: "text"},
	c.TypeTimeNS:      {Kind: "text"},
	c.TypeTimeTZ:      {Kind: "text"},
	c.TypeInterval:    {Kind: "text"},
}

// Form returns how the values of the type are written for NumPy.
func (s *Shape) Form() Form {
	form, ok := forms[s.id]
	switch {
	case s.id == c.TypeDecimal && s.width <= exact:
		return Form{"number", "<f8", 8}
	case s.id == c.TypeDecimal:
		return Form{Kind: "decimal"}
	case !ok || s.json:
		return Form{Kind: "json"}
	default:
		return form
	}
}

// AppendForm writes a value in its form, and reports whether there is one: what is
// NULL has as many zeros as a value has bytes. Once there are more than most bytes
// in dst, it is not whole.
func (k *Chunk) AppendForm(dst []byte, column, row, most int) (out []byte, there bool) {
	x := &k.cells[column]
	form := x.Form()
	if x.null(row) || form.Kind != "number" && x.endless(row) {
		return append(dst, make([]byte, form.size)...), false
	}
	switch {
	case x.id == c.TypeDate:
		return binary.LittleEndian.AppendUint64(dst, uint64(int64(at[int32](x, row)))), true //nolint:gosec // The bits are meant.
	case x.id == c.TypeDecimal && form.size > 0:
		f, _ := strconv.ParseFloat(string(appendDecimal(nil, x, row)), 64) // it is a number
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), true
	case x.id == c.TypeDecimal:
		return appendDecimal(dst, x, row), true
	case form.size > 0:
		return append(dst, x.fixed(row, form.size)...), true
	case x.id == c.TypeVarchar && !x.json, x.id == c.TypeBlob:
		b := x.bytes(row)
		return append(dst, b[:min(len(b), max(most-len(dst), 0)+1)]...), true
	case x.id == c.TypeEnum:
		return append(dst, x.words[x.word(row)]...), true
	case form.Kind == "text":
		// Nothing in it needs escaping: only the quotes are left out.
		start := len(dst)
		dst = x.append(dst, row, most)
		return append(dst[:start], dst[start+1:len(dst)-1]...), true
	default:
		return x.append(dst, row, most), true
	}
}

// endless reports whether a row is a date or time without end.
func (x *cells) endless(row int) bool {
	switch x.id { //nolint:exhaustive // The others have none.
	case c.TypeDate:
		return endless(int64(at[int32](x, row)), math.MaxInt32) != ""
	case c.TypeTimestamp, c.TypeTimestampS, c.TypeTimestampMS, c.TypeTimestampNS, c.TypeTimestampTZ:
		return endless(at[int64](x, row), math.MaxInt64) != ""
	default:
		return false
	}
}
