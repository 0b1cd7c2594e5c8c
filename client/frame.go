package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
)

// frame is one event of a text/event-stream.
type frame struct {
	name string
	data []byte
}

// errHuge is the error of an event that is too large to hold.
var errHuge = errors.New("an event is too large")

// frames yields the events in r. Comments are left out, and so is an event
// that r ends in the middle of. An event, and a line, of more than limit bytes
// is an error.
func frames(r io.Reader, limit int) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		var f frame
		var some bool
		for line, err := range lines(in, limit) {
			if err != nil {
				yield(frame{}, err)
				return
			}
			if len(line) == 0 {
				if some && !yield(f, nil) {
					return
				}
				f, some = frame{}, false
				continue
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(name) {
			case "event":
				f.name = string(value)
			case "data":
				if some {
					f.data = append(f.data, '\n')
				}
				some = true
				f.data = append(f.data, value...)
			}
			if len(f.data) > limit {
				yield(frame{}, errHuge)
				return
			}
		}
	}
}

// lines yields the lines of in, which end in LF, CR or both. A line is good
// until the next one.
func lines(in *bufio.Reader, limit int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var whole []byte
		for {
			part, err := in.ReadSlice('\n')
			whole = append(whole, part...)
			switch {
			case len(whole) > limit:
				yield(nil, errHuge)
				return
			case errors.Is(err, bufio.ErrBufferFull):
				continue
			case errors.Is(err, io.EOF):
				return // half a line is none
			case err != nil:
				yield(nil, err)
				return
			}
			text := bytes.TrimSuffix(whole[:len(whole)-1], []byte("\r"))
			for line := range bytes.SplitSeq(text, []byte("\r")) {
				if !yield(line, nil) {
					return
				}
			}
			whole = whole[:0]
		}
	}
}
