package e2bapi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"github.com/cove-sandbox/cove"
)

// A frame is a byte of flags, the length of the message in four bytes, the
// highest first, and the message.
const (
	frameHead = 5
	maxFrame  = 4 << 20 // of what a client sends

	flagCompressed = 1 << 0
	flagEnd        = 1 << 1 // the last frame of a stream: how it ended
)

// readFrame reads one frame with at most so many bytes in its message. The error
// is io.EOF where the stream ended before a frame began, and Invalid or
// Unsupported where what came is none that we take. It holds no more memory than
// bytes have come.
func readFrame(r io.Reader, most int) (flags byte, body []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, halfFrame(err)
	}
	flags = head[0]
	n := int64(binary.BigEndian.Uint32(head[1:]))
	switch {
	case flags&flagCompressed != 0:
		return flags, nil, cove.Errorf(cove.Unsupported, "compressed messages are not understood").Remedy("send them as they are")
	case flags&^flagEnd != 0:
		return flags, nil, cove.Errorf(cove.Invalid, "a frame with the flags %#x is unknown", flags)
	case n > int64(most):
		return flags, nil, cove.Errorf(cove.Exhausted, "a message of %d bytes is too long; the most is %d", n, most).Remedy("send it in parts")
	}
	var message bytes.Buffer
	if _, err := io.CopyN(&message, r, n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return flags, nil, halfFrame(err)
	}
	return flags, message.Bytes(), nil
}

// halfFrame is the error of a stream that ended within a frame. Others, and the
// end before one, stay as they are.
func halfFrame(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return cove.Wrap(cove.Invalid, err, "the stream ended in the middle of a message")
	}
	return err
}

// appendFrame adds a frame with v in JSON to b.
func appendFrame(b []byte, flags byte, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return b, cove.Wrap(cove.Internal, err, "the answer cannot be written; the log has the cause")
	}
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body))) //nolint:gosec // what we send is far below 4 GiB
	return append(b, body...), nil
}
