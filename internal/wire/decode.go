package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// ReasonBodyTooLarge is the finer word for a request body over its limit.
const ReasonBodyTooLarge = "body_too_large"

// Decode reads one JSON value of at most limit bytes from r. An empty body is
// the zero T. Names are exact; an unknown or repeated name, a value of the
// wrong type, bytes that are not UTF-8 and anything after the value are Invalid
// with the place of the fault, such as "network.mode". An error of r that is a
// *cove.Error comes back as it is.
func Decode[T any](r io.Reader, limit int64) (T, error) {
	var value T
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if ours, ok := errors.AsType[*cove.Error](err); ok {
		return value, ours
	}
	if err != nil {
		return value, cove.Wrap(cove.Invalid, err, "the body broke off before its end; send it again")
	}
	if int64(len(data)) > limit {
		return value, cove.Errorf(cove.Invalid, "the body is longer than %d bytes, the most that this route takes", limit).Reason(ReasonBodyTooLarge)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return value, nil
	}
	if !utf8.Valid(data) {
		return value, cove.Errorf(cove.Invalid, "the body is not UTF-8; send other bytes in the field that ends in _base64")
	}
	if err := check[T](data); err != nil {
		return value, err
	}
	if err := json.Unmarshal(data, &value); err != nil {
		return value, cove.Wrap(cove.Invalid, err, "the body does not fit this route; /openapi.json says what does")
	}
	return value, nil
}
