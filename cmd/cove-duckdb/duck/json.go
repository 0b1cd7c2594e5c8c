package duck

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	c "github.com/duckdb/duckdb-go-bindings"
)

// AppendRow writes a row as a JSON array. Once there are more than most bytes in
// dst, it is not whole and no JSON.
func (k *Chunk) AppendRow(dst []byte, row, most int) []byte {
	dst = append(dst, '[')
	for i := range k.cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst = k.cells[i].append(dst, row, most); len(dst) > most {
			return dst
		}
	}
	return append(dst, ']')
}

// AppendCut is AppendRow for a row that is too large: a value of more than most
// bytes is a text that holds its beginning and the mark.
func (k *Chunk) AppendCut(dst []byte, row, most int, mark string) []byte {
	dst = append(dst, '[')
	for i := range k.cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		x, start := &k.cells[i], len(dst)
		if dst = x.append(dst, row, start+most); len(dst)-start <= most {
			continue
		}
		whole := dst[start:]
		if x.id == c.TypeVarchar && !x.json && !x.null(row) {
			whole = x.bytes(row)
		}
		dst = appendBeginning(dst[:start], string(whole[:min(len(whole), most)]), mark, start+most)
	}
	return append(dst, ']')
}

// appendBeginning writes as much of a text as fits, and the mark.
func appendBeginning(dst []byte, s, mark string, most int) []byte {
	dst = append(dst, '"')
	for i, r := range s {
		if r == utf8.RuneError && len(s)-i < utf8.UTFMax {
			break // cut within a character
		}
		next := appendRune(dst, r)
		if len(next)+len(mark)+1 > most {
			break
		}
		dst = next
	}
	return append(append(dst, mark...), '"')
}

// append writes the value of a row. Once there are more than most bytes it may end.
func (x *cells) append(dst []byte, row, most int) []byte {
	if x.null(row) {
		return append(dst, "null"...)
	}
	return x.write(x, dst, row, most)
}

// An appender writes a value that is not NULL.
type appender func(x *cells, dst []byte, row, most int) []byte

// appenders has every type that can be read.
var appenders = map[c.Type]appender{
	c.TypeSQLNull:   func(_ *cells, dst []byte, _, _ int) []byte { return append(dst, "null"...) },
	c.TypeBoolean:   func(x *cells, dst []byte, row, _ int) []byte { return strconv.AppendBool(dst, at[bool](x, row)) },
	c.TypeTinyInt:   signed[int8],
	c.TypeSmallInt:  signed[int16],
	c.TypeInteger:   signed[int32],
	c.TypeBigInt:    signed[int64],
	c.TypeUTinyInt:  unsigned[uint8],
	c.TypeUSmallInt: unsigned[uint16],
	c.TypeUInteger:  unsigned[uint32],
	c.TypeUBigInt:   unsigned[uint64],
	c.TypeHugeInt:   func(x *cells, dst []byte, row, _ int) []byte { return appendHuge(dst, at[huge](x, row)) },
	c.TypeUHugeInt:  func(x *cells, dst []byte, row, _ int) []byte { return appendUhuge(dst, at[uhuge](x, row)) },
	c.TypeFloat: func(x *cells, dst []byte, row, _ int) []byte {
		return appendFloat(dst, float64(at[float32](x, row)), 32)
	},
	c.TypeDouble:  func(x *cells, dst []byte, row, _ int) []byte { return appendFloat(dst, at[float64](x, row), 64) },
	c.TypeDecimal: decimal,
	c.TypeDate:    quoted(func(dst []byte, x *cells, row int) []byte { return appendDay(dst, at[int32](x, row)) }),
	c.TypeTime: quoted(func(dst []byte, x *cells, row int) []byte {
		return appendClock(dst, time.Duration(at[int64](x, row))*time.Microsecond)
	}),
	c.TypeTimeNS:      quoted(func(dst []byte, x *cells, row int) []byte { return appendClock(dst, time.Duration(at[int64](x, row))) }),
	c.TypeTimeTZ:      quoted(func(dst []byte, x *cells, row int) []byte { return appendZoned(dst, at[uint64](x, row)) }),
	c.TypeTimestampS:  stamp(1, ""),
	c.TypeTimestampMS: stamp(1_000, ""),
	c.TypeTimestamp:   stamp(1_000_000, ""),
	c.TypeTimestampNS: stamp(1_000_000_000, ""),
	c.TypeTimestampTZ: stamp(1_000_000, "Z"),
	c.TypeInterval:    quoted(func(dst []byte, x *cells, row int) []byte { return appendInterval(dst, at[interval](x, row)) }),
	c.TypeUUID:        quoted(appendUUID),
	c.TypeBit:         bits,
	c.TypeVarchar:     varchar,
	c.TypeBlob:        blob,
	c.TypeEnum: func(x *cells, dst []byte, row, most int) []byte {
		return appendText(dst, x.words[x.word(row)], most)
	},
	c.TypeList: func(x *cells, dst []byte, row, most int) []byte {
		s := at[span](x, row)
		return x.elements(dst, s.start, s.size, most)
	},
	c.TypeArray: func(x *cells, dst []byte, row, most int) []byte {
		return x.elements(dst, row*x.size, x.size, most)
	},
	c.TypeMap:    pairs,
	c.TypeStruct: func(x *cells, dst []byte, row, most int) []byte { return x.object(dst, row, most) },
	c.TypeUnion: func(x *cells, dst []byte, row, most int) []byte {
		return x.kids[1+int(at[uint8](&x.kids[0], row))].append(dst, row, most)
	},
}

func signed[T int8 | int16 | int32 | int64](x *cells, dst []byte, row, _ int) []byte {
	return strconv.AppendInt(dst, int64(at[T](x, row)), 10)
}

func unsigned[T uint8 | uint16 | uint32 | uint64](x *cells, dst []byte, row, _ int) []byte {
	return strconv.AppendUint(dst, uint64(at[T](x, row)), 10)
}

// exact is how many decimal digits a number of 64 bits holds whatever they are.
const exact = 15

func decimal(x *cells, dst []byte, row, _ int) []byte {
	if x.width <= exact {
		return appendDecimal(dst, x, row)
	}
	return append(appendDecimal(append(dst, '"'), x, row), '"')
}

// quoted is for values that hold nothing which must be escaped.
func quoted(write func(dst []byte, x *cells, row int) []byte) appender {
	return func(x *cells, dst []byte, row, _ int) []byte {
		return append(write(append(dst, '"'), x, row), '"')
	}
}

func stamp(unit int64, zone string) appender {
	return quoted(func(dst []byte, x *cells, row int) []byte { return appendStamp(dst, at[int64](x, row), unit, zone) })
}

func varchar(x *cells, dst []byte, row, most int) []byte {
	b := x.bytes(row)
	// A document of any size would be read to see whether it is one.
	if x.json && len(b) <= max(most-len(dst), 0) && json.Valid(b) {
		return append(dst, b...)
	}
	return appendText(dst, string(b[:min(len(b), max(most-len(dst), 0)+utf8.UTFMax)]), most)
}

func blob(x *cells, dst []byte, row, most int) []byte {
	b := x.bytes(row)
	b = b[:min(len(b), max(most-len(dst), 0)+3)]
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), b), '"')
}

// word is the number of an enum's word.
func (x *cells) word(row int) int {
	switch x.inner { //nolint:exhaustive // An enum has no others.
	case c.TypeUTinyInt:
		return int(at[uint8](x, row))
	case c.TypeUSmallInt:
		return int(at[uint16](x, row))
	default:
		return int(at[uint32](x, row))
	}
}

// elements writes some values of the one kid as an array.
func (x *cells) elements(dst []byte, start, size, most int) []byte {
	dst = append(dst, '[')
	for i := range size {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst = x.kids[0].append(dst, start+i, most); len(dst) > most {
			return dst
		}
	}
	return append(dst, ']')
}

// object writes a row of all kids with their names.
func (x *cells) object(dst []byte, row, most int) []byte {
	dst = append(dst, '{')
	for i := range x.kids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, x.names[i], len(dst)+6*len(x.names[i])+2), ':')
		if dst = x.kids[i].append(dst, row, most); len(dst) > most {
			return dst
		}
	}
	return append(dst, '}')
}

func pairs(x *cells, dst []byte, row, most int) []byte {
	s := at[span](x, row)
	dst = append(dst, '[')
	for i := range s.size {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst = x.object(dst, s.start+i, most); len(dst) > most {
			return dst
		}
	}
	return append(dst, ']')
}

// appendUUID writes the 128 bits, of which the engine turns the first to sort them.
func appendUUID(dst []byte, x *cells, row int) []byte {
	const digits = "0123456789abcdef"
	h := at[uhuge](x, row)
	for half, n := range [2]uint64{h.high ^ 1<<63, h.low} {
		for i := range 16 {
			switch half*16 + i {
			case 8, 12, 16, 20:
				dst = append(dst, '-')
			default:
			}
			dst = append(dst, digits[n>>(60-4*i)&15])
		}
	}
	return dst
}

// bits writes a text of 0 and 1. The first byte says how many bits of the next are
// not used.
func bits(x *cells, dst []byte, row, most int) []byte {
	b := x.bytes(row)
	dst = append(dst, '"')
	for i := int(b[0]); i < 8*(len(b)-1) && len(dst) <= most; i++ {
		dst = append(dst, '0'+b[1+i/8]>>(7-i%8)&1)
	}
	return append(dst, '"')
}

// appendText writes a text. Once there are more than most bytes it ends.
func appendText(dst []byte, s string, most int) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		if dst = appendRune(dst, r); len(dst) > most {
			return dst
		}
	}
	return append(dst, '"')
}

// appendRune writes one character of a text.
func appendRune(dst []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r == '\n':
		return append(dst, '\\', 'n')
	case r == '\t':
		return append(dst, '\\', 't')
	case r == '\r':
		return append(dst, '\\', 'r')
	case r < ' ' || r == 0x7f:
		return append(dst, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
	default:
		return utf8.AppendRune(dst, r)
	}
}
