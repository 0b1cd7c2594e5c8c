package ask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxFrame is how many bytes of JSON a frame has at most.
const MaxFrame = 4 << 20

// headSize is how many digits begin a frame.
const headSize = 8

// ErrTooLarge is a message that fits no frame. Nothing of it was written.
var ErrTooLarge = errors.New("the message is larger than a frame")

// Write writes one frame in one call of w.
func Write(w io.Writer, message any) error {
	var frame bytes.Buffer
	frame.Write(make([]byte, headSize))
	encoder := json.NewEncoder(&frame)
	encoder.SetEscapeHTML(false) // rows would grow
	if err := encoder.Encode(message); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	size := frame.Len() - headSize
	if size > MaxFrame {
		return ErrTooLarge
	}
	copy(frame.Bytes(), fmt.Sprintf("%0*d", headSize, size))
	_, err := w.Write(frame.Bytes())
	return err
}

// Read reads one frame into message. Between two frames the end is [io.EOF]; within
// one it is [io.ErrUnexpectedEOF]. It takes no more memory than has come. After
// another error the stream is of no use.
func Read(r io.Reader, message any) error {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size := 0
	for _, c := range head {
		if c < '0' || c > '9' {
			return fmt.Errorf("a frame begins with %q, which is not its length", head[:])
		}
		size = size*10 + int(c-'0')
	}
	if size > MaxFrame {
		return fmt.Errorf("a frame of %d bytes is larger than %d", size, MaxFrame)
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil {
		return err
	}
	if len(body) < size {
		return io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(body, message); err != nil {
		return fmt.Errorf("a frame is not the message that was expected: %w", err)
	}
	return nil
}
