package msbapi

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Streams by their names in answers.
const (
	stdout = "stdout"
	stderr = "stderr"
)

// line is one line of output.
type line struct {
	Stream string `json:"stream"`
	Text   string `json:"text"`
}

// Bounds on the output in one answer.
const (
	maxOutput = 16 << 20
	lineCost  = 64 // of a line beside its text
)

// lines collects output as it comes, in lines of whichever stream ends one first. It
// is safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	all  []line
	part map[string]*bytes.Buffer // of a line that is not over
	room int
	cut  int64 // bytes for which there was no room
}

func newLines() *lines {
	return &lines{all: []line{}, part: map[string]*bytes.Buffer{stdout: {}, stderr: {}}, room: maxOutput}
}

// take is for what a program writes.
func (l *lines) take(ch cove.Chunk) {
	stream := stdout
	if ch.Stream == cove.Stderr {
		stream = stderr
	}
	l.write(stream, ch.Data)
}

func (l *lines) write(stream string, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(data) > 0 {
		one, rest, whole := bytes.Cut(data, []byte("\n"))
		l.grow(stream, one)
		if whole {
			l.end(stream)
		}
		data = rest
	}
}

// grow adds to the line under way.
func (l *lines) grow(stream string, data []byte) {
	n := min(len(data), l.room)
	l.room -= n
	l.cut += int64(len(data) - n)
	l.part[stream].Write(data[:n])
}

// end ends the line under way.
func (l *lines) end(stream string) {
	part := l.part[stream]
	if l.room < lineCost {
		if part.Len() == 0 {
			l.cut++
			return
		}
		l.room = lineCost // the last one
	}
	l.room -= lineCost
	l.all = append(l.all, line{stream, strings.ToValidUTF8(part.String(), "\uFFFD")})
	part.Reset()
}

// text adds whole lines of ours.
func (l *lines) text(stream, text string) {
	if text != "" {
		l.write(stream, []byte(strings.TrimSuffix(text, "\n")+"\n"))
	}
}

// done returns all lines. Where some did not fit, the last one says so.
func (l *lines) done() []line {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, stream := range []string{stdout, stderr} {
		if l.part[stream].Len() > 0 {
			l.end(stream)
		}
	}
	if l.cut > 0 {
		l.all = append(l.all, line{stderr, fmt.Sprintf("cove: %d bytes more did not fit into the answer; write to a file and read it in parts", l.cut)})
	}
	return l.all
}
