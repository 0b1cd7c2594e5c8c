package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// appendBody appends a line up to its "prev". It is written by hand because it
// runs before every action of every sandbox; a test holds it to what
// encoding/json would write.
func appendBody(buf []byte, e *cove.Event, anchored int64, prev sum) []byte {
	buf = appendInt(buf, `{"seq":`, e.Seq)
	buf = append(buf, `,"time":"`...)
	buf = e.Time.AppendFormat(buf, time.RFC3339Nano)
	buf = append(buf, '"')
	buf = appendText(buf, `,"node":`, e.Node)
	buf = appendString(append(buf, `,"kind":`...), e.Kind)
	buf = appendString(append(buf, `,"phase":`...), string(e.Phase))
	buf = appendNumber(buf, `,"intent":`, e.Intent)
	buf = appendText(buf, `,"principal":`, e.Principal)
	buf = appendText(buf, `,"tenant":`, e.Tenant)
	buf = appendText(buf, `,"session":`, string(e.Session))
	buf = appendText(buf, `,"provider":`, e.Provider)
	buf = appendText(buf, `,"effect":`, string(e.Effect))
	buf = appendText(buf, `,"rule":`, e.Rule)
	buf = appendText(buf, `,"code":`, string(e.Code))
	buf = appendText(buf, `,"outcome":`, string(e.Outcome))
	buf = appendNumber(buf, `,"wall":`, int64(e.Wall))
	if len(e.Data) > 0 {
		buf = append(append(buf, `,"data":`...), e.Data...)
	}
	buf = appendNumber(buf, `,"anchored":`, anchored)
	buf = append(append(buf, `,"prev":"`...), prev[:]...)
	return append(buf, '"')
}

func appendNumber(buf []byte, name string, n int64) []byte {
	if n == 0 {
		return buf
	}
	return appendInt(buf, name, n)
}

func appendText(buf []byte, name, s string) []byte {
	if s == "" {
		return buf
	}
	return appendString(append(buf, name...), s)
}

func appendString(buf []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always has an encoding
			return append(buf, quoted...)
		}
	}
	buf = append(buf, '"')
	buf = append(buf, s...)
	return append(buf, '"')
}

// checkData returns what may stand in a line: JSON on one line.
func checkData(data json.RawMessage) (json.RawMessage, error) {
	switch {
	case len(data) == 0:
		return nil, nil
	case len(data) > maxLine:
		return nil, cove.InvalidField("data", "is %d bytes long; a line of the journal holds at most %d", len(data), maxLine)
	case !json.Valid(data) || !utf8.Valid(data):
		return nil, cove.InvalidField("data", "is not JSON")
	case bytes.IndexByte(data, '\n') < 0:
		return data, nil
	}
	var line bytes.Buffer
	if err := json.Compact(&line, data); err != nil {
		return nil, cove.InvalidField("data", "is not JSON")
	}
	return line.Bytes(), nil
}

// record is a line as it was read.
type record struct {
	cove.Event

	Anchored int64  `json:"anchored"`
	Prev     string `json:"prev"`

	body []byte // what the sum is of; part of the line that was decoded
	sum  sum    // what the line claims
}

var errLine = errors.New("not a line of a journal")

// decodeLine reads a line without its newline. It does not check the sum.
func decodeLine(line []byte) (record, error) {
	var r record
	var ok bool
	if r.body, r.sum, ok = unseal(line); !ok || !utf8.Valid(line) {
		return record{}, errLine
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return record{}, errors.Join(errLine, err)
	}
	if r.Seq < 1 || len(r.Prev) != sumLen {
		return record{}, errLine
	}
	return r, nil
}

// link is as much of a line as its place in the chain depends on.
type link struct {
	Seq  int64  `json:"seq"`
	Prev string `json:"prev"`

	body []byte // what the sum is of
	sum  sum    // what the line claims
}

// decodeLink reads a line without its newline, like decodeLine, and leaves the
// event alone.
func decodeLink(line []byte) (link, error) {
	var l link
	var ok bool
	if l.body, l.sum, ok = unseal(line); !ok || !utf8.Valid(line) {
		return link{}, errLine
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return link{}, errors.Join(errLine, err)
	}
	if l.Seq < 1 || len(l.Prev) != sumLen {
		return link{}, errLine
	}
	return l, nil
}

// seqOf returns the number of a line without decoding the rest, or 0.
func seqOf(line []byte) int64 {
	digits, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	if !ok {
		return 0
	}
	if end := bytes.IndexByte(digits, ','); end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || n < 1 {
		return 0
	}
	return n
}
