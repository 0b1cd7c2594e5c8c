package wire

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Quantity is an amount that people write as text, such as "1g" of memory or
// "1.5" processors. A JSON number is taken too.
type Quantity string

// UnmarshalJSON takes text or a number.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*q = Quantity(text)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return cove.Wrap(cove.Invalid, err, `must be text such as "1g" or a number`)
	}
	*q = Quantity(n)
	return nil
}

func bytesQuantity(b cove.Bytes) *Quantity {
	if b == 0 {
		return nil
	}
	return new(Quantity(b.String()))
}

func (q *Quantity) bytes(field string) (cove.Bytes, error) {
	if q == nil {
		return 0, nil
	}
	b, err := cove.ParseBytes(string(*q))
	if err != nil {
		return 0, cove.InvalidField(field, "%.40q is not a size: write a number with b, k, m, g or t, such as 512m or 1g", string(*q))
	}
	if b <= 0 {
		return 0, cove.InvalidField(field, "%.40q is not above 0; leave it out for the default", string(*q))
	}
	return b, nil
}

func cpuQuantity(cpus float64) *Quantity {
	if cpus == 0 {
		return nil
	}
	text := strconv.FormatFloat(cpus, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return new(Quantity(text))
}

func (q *Quantity) cpus(field string) (float64, error) {
	if q == nil {
		return 0, nil
	}
	n, err := strconv.ParseFloat(string(*q), 64)
	if err != nil || !(n > 0) || math.IsInf(n, 0) {
		return 0, cove.InvalidField(field, `%.40q is not a number of processors above 0, such as "1.0" or "0.5"`, string(*q))
	}
	return n, nil
}

// Longest bounds every span a caller may name, so that none overflows.
const Longest = 10 * 366 * 24 * time.Hour

// span reads a number of units that must be above 0 where it is given.
func span(field string, n *float64, unit time.Duration) (time.Duration, error) {
	if n == nil {
		return 0, nil
	}
	d := math.Round(*n * float64(unit))
	if !(d >= 1) {
		return 0, cove.InvalidField(field, "%s is not a time; use a number of %ss above 0", trim(*n), unitName(unit))
	}
	if d > float64(Longest) {
		return 0, cove.InvalidField(field, "%s %ss is out of range; the most is %s", trim(*n), unitName(unit), strconv.FormatFloat(float64(Longest)/float64(unit), 'f', -1, 64))
	}
	return time.Duration(d), nil
}

func unitName(unit time.Duration) string {
	if unit == time.Minute {
		return "minute"
	}
	return "second"
}

func trim(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// optional returns d in units, or nil for 0.
func optional(d, unit time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	return new(in(d, unit))
}

func in(d, unit time.Duration) float64 { return float64(d) / float64(unit) }

// of is the way back from in; a number that is no duration gives 0 or a bound.
func of(n float64, unit time.Duration) time.Duration {
	d := math.Round(n * float64(unit))
	switch {
	case math.IsNaN(d):
		return 0
	case math.Abs(d) > math.MaxInt64/2:
		return time.Duration(math.Copysign(math.MaxInt64/2, d))
	}
	return time.Duration(d)
}

func megabytes(b cove.Bytes) float64 { return float64(b) / float64(cove.MiB) }

func fromMegabytes(n float64) cove.Bytes {
	return cove.Bytes(of(n, time.Duration(cove.MiB)))
}

// above reads a whole number that must be above 0 where it is given.
func above[N int | int64](field string, n *N) (N, error) {
	if n == nil {
		return 0, nil
	}
	if *n <= 0 {
		return 0, cove.InvalidField(field, "%d is not above 0; leave it out for the default", *n)
	}
	return *n, nil
}

func unlessZero[N comparable](n N) *N {
	var zero N
	if n == zero {
		return nil
	}
	return &n
}
