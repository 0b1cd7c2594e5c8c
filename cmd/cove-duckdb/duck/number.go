package duck

import (
	"math"
	"math/big"
	"strconv"

	c "github.com/duckdb/duckdb-go-bindings"
)

// appendHuge writes it in decimal digits.
func appendHuge(dst []byte, h huge) []byte {
	if h.high == 0 {
		return strconv.AppendUint(dst, h.low, 10)
	}
	return join(big.NewInt(h.high), h.low).Append(dst, 10)
}

func appendUhuge(dst []byte, h uhuge) []byte {
	return join(new(big.Int).SetUint64(h.high), h.low).Append(dst, 10)
}

// join puts the two halves of an integer together.
func join(high *big.Int, low uint64) *big.Int {
	n := high.Lsh(high, 64)
	return n.Add(n, new(big.Int).SetUint64(low))
}

// appendDecimal writes the digits with a point before the last scale of them.
func appendDecimal(dst []byte, x *cells, row int) []byte {
	start := len(dst)
	switch x.inner { //nolint:exhaustive // A decimal has no others.
	case c.TypeSmallInt:
		dst = strconv.AppendInt(dst, int64(at[int16](x, row)), 10)
	case c.TypeInteger:
		dst = strconv.AppendInt(dst, int64(at[int32](x, row)), 10)
	case c.TypeBigInt:
		dst = strconv.AppendInt(dst, at[int64](x, row), 10)
	default:
		dst = appendHuge(dst, at[huge](x, row))
	}
	scale := int(x.scale)
	if scale == 0 {
		return dst
	}
	if dst[start] == '-' {
		start++
	}
	digits := string(dst[start:])
	dst = dst[:start]
	for range scale + 1 - len(digits) {
		digits = "0" + digits
	}
	dst = append(dst, digits[:len(digits)-scale]...)
	dst = append(dst, '.')
	return append(dst, digits[len(digits)-scale:]...)
}

// appendFloat writes the shortest number that reads as the same, or a word.
func appendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, bits)
}
