package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// Decode reads one JSON value. An empty body is the zero T. Names are exact; an
// unknown or repeated name, a value of the wrong type, null in the place of the whole,
// bytes that are not UTF-8, halves of surrogate pairs, more values than
// [intake.CheckJSON] takes and anything after the value are Invalid with the place of
// the fault, such as "network.mode".
func Decode[T any](data []byte) (T, error) {
	var value T
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return value, nil
	}
	if !utf8.Valid(data) {
		return value, cove.Errorf(cove.Invalid, "the body is not UTF-8; send other bytes in the field that ends in _base64")
	}
	if err := intake.CheckJSON(data); err != nil {
		return value, err
	}
	if err := check[T](data); err != nil {
		return value, err
	}
	if bytes.Equal(data, []byte("null")) {
		return value, cove.Errorf(cove.Invalid, "the body is null; leave it out or send an object")
	}
	if half := loneSurrogate(data); half != "" {
		return value, cove.Errorf(cove.Invalid, "the body holds %s, half of a character; send the whole character, or other bytes in the field that ends in _base64", half)
	}
	if err := json.Unmarshal(data, &value); err != nil {
		return value, cove.Wrap(cove.Invalid, err, "the body does not fit this route; /openapi.json says what does")
	}
	return value, nil
}

// loneSurrogate returns the first escape in JSON that stands for half of a
// character, or "". The standard decoder would put another character into its
// place, and so do something else than was asked for.
func loneSurrogate(data []byte) string {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		r, ok := escaped(data[i:])
		if !ok {
			i++ // the second character of a short escape
			continue
		}
		if utf16.IsSurrogate(r) {
			low, ok := escaped(data[i+6:])
			if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
				return string(data[i : i+6])
			}
			i += 6
		}
		i += 5
	}
	return ""
}

// escaped reads an escape of the form that has four hex digits.
func escaped(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(n), err == nil
}
