package mailbox

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
)

// Bounds that both sides keep.
const (
	// Lease is how long a link lives that nobody asks about.
	Lease = 90 * time.Second
	// MaxWait is the longest that a question waits for bytes.
	MaxWait = 30 * time.Second
	// MaxGive and MaxTake bound the bytes of one question and one answer.
	MaxGive = 512 << 10
	MaxTake = 256 << 10
	// MaxPiece bounds one argument, in bytes before they are encoded: Linux takes
	// 128 KiB in one.
	MaxPiece = 72 << 10

	maxHeld = 1 << 20 // bytes that the box holds each way
	maxLink = 64
)

// Status says how a link is.
type Status string

// How a link is.
const (
	Live Status = "live"
	Over Status = "over" // the agent has ended: there is nothing after these bytes
	Gone Status = "gone" // this is not the link, or not any more
)

// Answer is what the box says.
type Answer struct {
	Status Status
	Given  int64 // bytes that were handed in so far
	At     int64 // the number of the first byte of Data
	Data   []byte
}

const mark = "cove-mail/1"

// String is the line that the executable prints.
func (a Answer) String() string {
	text := fmt.Sprintf("%s %s %d %d =%s", mark, a.Status, a.Given, a.At, base64.StdEncoding.EncodeToString(a.Data))
	return fmt.Sprintf("%s %08x", text, crc32.ChecksumIEEE([]byte(text)))
}

// errNoAnswer says that a line is none of the box's, or was damaged.
var errNoAnswer = errors.New("not an answer of the mailbox")

// ParseAnswer reads a line. What is not exactly one is an error: the sandbox may
// print anything.
func ParseAnswer(line string) (Answer, error) {
	parts := strings.Split(line, " ")
	if len(parts) != 6 || parts[0] != mark || len(line) > 2*MaxTake {
		return Answer{}, errNoAnswer
	}
	a := Answer{Status: Status(parts[1])}
	var err1, err2, err3 error
	a.Given, err1 = strconv.ParseInt(parts[2], 10, 64)
	a.At, err2 = strconv.ParseInt(parts[3], 10, 64)
	a.Data, err3 = base64.StdEncoding.DecodeString(strings.TrimPrefix(parts[4], "="))
	known := a.Status == Live || a.Status == Over || a.Status == Gone
	if err := errors.Join(err1, err2, err3); err != nil || !known || a.Given < 0 || a.At < 0 || len(a.Data) > MaxTake || a.String() != line {
		return Answer{}, errNoAnswer
	}
	return a, nil
}

// Pieces encodes bytes as the arguments of give.
func Pieces(data []byte) []string {
	var args []string
	for len(data) > 0 {
		n := min(len(data), MaxPiece)
		args = append(args, base64.StdEncoding.EncodeToString(data[:n]))
		data = data[n:]
	}
	return args
}

func unpieces(args []string) ([]byte, error) {
	var data []byte
	for _, a := range args {
		b, err := base64.StdEncoding.DecodeString(a)
		if err != nil {
			return nil, err
		}
		if data = append(data, b...); len(data) > MaxGive {
			return nil, errors.New("too much at once")
		}
	}
	return data, nil
}
