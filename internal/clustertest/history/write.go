package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Writer writes a history. Many may use it at once.
type Writer struct {
	since time.Time

	mu   sync.Mutex
	w    io.Writer
	last int
	err  error
}

// line is a line of the file: one of the two.
type line struct {
	Kind Kind `json:"kind"`
	*Run
	*Event
}

// NewWriter writes the first line. Times count from now.
func NewWriter(w io.Writer, run Run) *Writer {
	out := &Writer{since: time.Now(), w: w}
	out.put(line{Kind: KindRun, Run: &run})
	return out
}

// Now is the time as the history has it.
func (w *Writer) Now() int64 { return max(1, int64(time.Since(w.since))) }

// Call writes down that e begins, and gives it its number.
func (w *Writer) Call(e *Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	e.Number = w.last
	e.Start = w.Now()
	w.put(line{Kind: KindCall, Event: e})
}

// Return writes down what came of e.
func (w *Writer) Return(e *Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.End = w.Now()
	w.put(line{Kind: KindReturn, Event: e})
}

// Err returns what went wrong with the writing.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Writer) put(l line) {
	text, err := json.Marshal(l)
	if err == nil {
		_, err = w.w.Write(append(text, '\n'))
	}
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("write history: %w", err))
	}
}
