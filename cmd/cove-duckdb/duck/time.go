package duck

import (
	"math"
	"strconv"
	"time"

	c "github.com/duckdb/duckdb-go-bindings"
)

// endless returns the word for a date or time that has no end, given as the number
// that stands for it, or "".
func endless(n, most int64) string {
	switch n {
	case most:
		return "infinity"
	case -most:
		return "-infinity"
	default:
		return ""
	}
}

// appendDate writes the day on which t is, before the year 1 as the engine does.
func appendDate(dst []byte, t time.Time) []byte {
	year, end := t.Year(), ""
	if year <= 0 {
		year, end = 1-year, " (BC)"
	}
	for most := 1000; most > 1 && year < most; most /= 10 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(dst, int64(year), 10)
	return append(t.AppendFormat(dst, "-01-02"), end...)
}

// appendDay writes a DATE.
func appendDay(dst []byte, days int32) []byte {
	if word := endless(int64(days), math.MaxInt32); word != "" {
		return append(dst, word...)
	}
	return appendDate(dst, time.Unix(int64(days)*86400, 0).UTC())
}

// appendStamp writes a timestamp of so many units since 1970, each a part of a
// second.
func appendStamp(dst []byte, n, unit int64, zone string) []byte {
	if word := endless(n, math.MaxInt64); word != "" {
		return append(dst, word...)
	}
	seconds, rest := n/unit, n%unit
	if rest < 0 {
		seconds, rest = seconds-1, rest+unit
	}
	t := time.Unix(seconds, rest*(int64(time.Second)/unit)).UTC()
	dst = appendDate(dst, t)
	return append(t.AppendFormat(dst, "T15:04:05.999999999"), zone...)
}

// appendClock writes a time of day, which may be 24:00:00.
func appendClock(dst []byte, t time.Duration) []byte {
	dst = append(appendTwo(dst, int(t/time.Hour)), ':')
	dst = append(appendTwo(dst, int(t/time.Minute%60)), ':')
	return appendFraction(appendTwo(dst, int(t/time.Second%60)), t%time.Second)
}

// appendTwo writes a number of two digits.
func appendTwo(dst []byte, n int) []byte {
	const digits = "0123456789"
	return append(dst, digits[n/10], digits[n%10])
}

// appendFraction writes what is left of a second, without zeros at its end.
func appendFraction(dst []byte, rest time.Duration) []byte {
	if rest == 0 {
		return dst
	}
	digits := strconv.FormatInt(int64(time.Second+rest), 10)[1:]
	for digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return append(append(dst, '.'), digits...)
}

// appendZoned writes a time of day with its distance from UTC.
func appendZoned(dst []byte, bits uint64) []byte {
	parts := c.FromTimeTZ(c.NewTimeTZ(bits))
	clock, offset := c.TimeTZStructMembers(&parts)
	h, m, s, micros := c.TimeStructMembers(&clock)
	dst = appendClock(dst, time.Duration(h)*time.Hour+time.Duration(m)*time.Minute+time.Duration(s)*time.Second+time.Duration(micros)*time.Microsecond)
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	dst = appendTwo(append(dst, sign), int(offset/3600))
	dst = appendTwo(append(dst, ':'), int(offset/60%60))
	if rest := int(offset % 60); rest != 0 {
		dst = appendTwo(append(dst, ':'), rest)
	}
	return dst
}

// appendInterval writes a length of time in the form of ISO 8601, each part with a
// sign of its own.
func appendInterval(dst []byte, i interval) []byte {
	if i == (interval{}) {
		return append(dst, "PT0S"...)
	}
	part := func(n int64, letter byte) {
		if n != 0 {
			dst = append(strconv.AppendInt(dst, n, 10), letter)
		}
	}
	dst = append(dst, 'P')
	part(int64(i.months/12), 'Y')
	part(int64(i.months%12), 'M')
	part(int64(i.days), 'D')
	if i.micros == 0 {
		return dst
	}
	dst = append(dst, 'T')
	const second = 1_000_000
	part(i.micros/(3600*second), 'H')
	part(i.micros/(60*second)%60, 'M')
	rest := i.micros % (60 * second)
	if rest == 0 {
		return dst
	}
	if rest < 0 {
		dst, rest = append(dst, '-'), -rest
	}
	dst = strconv.AppendInt(dst, rest/second, 10)
	dst = appendFraction(dst, time.Duration(rest%second)*time.Microsecond)
	return append(dst, 'S')
}
