package client

import (
	"io"
	"iter"
)

// Frame is one event of a text/event-stream.
type Frame struct{ Name, Data string }

// Frames yields the events in r.
func Frames(r io.Reader, limit int) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		for f, err := range frames(r, limit) {
			if !yield(Frame{f.name, string(f.data)}, err) {
				return
			}
		}
	}
}
