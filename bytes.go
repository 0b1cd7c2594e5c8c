package cove

import (
	"math"
	"strconv"
	"strings"
)

// Bytes counts bytes.
type Bytes int64

// The usual multiples. People write "1g" and mean 1024³, as Docker does.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// ParseBytes reads "512m", "1g", "1.5GiB", "100 kb" or a plain number of bytes.
// Units are powers of 1024. The error says what is accepted.
func ParseBytes(text string) (Bytes, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz ")
	unit := strings.TrimSpace(s[len(digits):])
	scale := map[string]Bytes{"": 1, "b": 1, "k": KiB, "m": MiB, "g": GiB, "t": TiB}
	m, ok := scale[strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")]
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n >= 0) || n*float64(m) >= math.MaxInt64 || strings.ContainsAny(digits, "xp_+") {
		return 0, Errorf(Invalid, "%q is not a size: write a number with b, k, m, g or t, such as 512m or 1g", text)
	}
	return Bytes(n * float64(m)), nil
}

// String returns the shortest exact form, such as "512m" or "1g".
func (b Bytes) String() string {
	for _, u := range []struct {
		size Bytes
		name string
	}{{TiB, "t"}, {GiB, "g"}, {MiB, "m"}, {KiB, "k"}} {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}
