package duckdb

import (
	"sync"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// headSize is how many digits begin a frame.
const headSize = 8

// answers takes what a helper writes apart into frames. It implements io.Writer, and
// never fails or waits: what says too much is ended by who listens.
type answers struct {
	got chan []byte
	// spoiled is closed when the helper said what it may not. Nothing after that is
	// heard.
	spoiled chan struct{}

	mu    sync.Mutex
	asked bool   // guarded by mu; an answer is expected
	bad   bool   // guarded by mu; spoiled is closed
	digit int    // guarded by mu; digits of the length that were read
	want  int    // guarded by mu; the length so far
	text  []byte // guarded by mu; of the answer that has begun
}

func newAnswers() *answers {
	return &answers{got: make(chan []byte, 1), spoiled: make(chan struct{})}
}

// expect says that a question goes out, which may be answered once.
func (a *answers) expect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = true
}

// Write implements [io.Writer].
func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(p)
	for len(p) > 0 && !a.bad {
		p = a.take(p)
	}
	return n, nil
}

// take uses up a part of p and returns the rest. The caller holds mu.
func (a *answers) take(p []byte) []byte {
	if !a.asked {
		a.spoil()
		return nil
	}
	for a.digit < headSize {
		if len(p) == 0 {
			return nil
		}
		if p[0] < '0' || p[0] > '9' {
			a.spoil()
			return nil
		}
		a.want = a.want*10 + int(p[0]-'0')
		a.digit++
		p = p[1:]
	}
	if a.want == 0 || a.want > ask.MaxFrame {
		a.spoil()
		return nil
	}
	n := min(a.want-len(a.text), len(p))
	a.text = append(a.text, p[:n]...)
	if len(a.text) == a.want {
		a.got <- a.text // it has room: there is one answer to a question
		a.asked, a.digit, a.want, a.text = false, 0, 0, nil
	}
	return p[n:]
}

// spoil ends the hearing. The caller holds mu.
func (a *answers) spoil() {
	a.bad, a.text = true, nil
	close(a.spoiled)
}

// deafen ends the hearing where nobody listens any more.
func (a *answers) deafen() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.bad {
		a.spoil()
	}
}

// fine reports whether the helper said only what it was asked.
func (a *answers) fine() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.bad
}
