package msbapi

import "github.com/cove-sandbox/cove"

// Lines are the lines of output that comes in pieces, with room for so much.
func Lines(room int, pieces ...string) (texts []string) {
	l := newLines()
	l.room = room
	for _, p := range pieces {
		l.take(cove.Chunk{Stream: cove.Stdout, Data: []byte(p)})
	}
	for _, one := range l.done() {
		texts = append(texts, one.Text)
	}
	return texts
}
