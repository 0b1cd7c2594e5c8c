package engine

import (
	"context"
	"io"
	"sync"

	"github.com/cove-sandbox/cove"
)

// inputBytes is how much input may wait for a program that does not read.
const inputBytes = 1 << 20

// input is the standard input of a background program: callers write into it
// at any time, and the program reads. Bytes that are not read yet are bounded.
type input struct {
	mu     sync.Mutex
	buf    []byte        // guarded by mu
	eof    bool          // guarded by mu
	closed bool          // guarded by mu; the program is gone
	moved  chan struct{} // guarded by mu; closed and replaced at every change
}

func newInput() *input { return &input{moved: make(chan struct{})} }

// change runs set and wakes everybody who waits.
func (in *input) change(set func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	set()
	close(in.moved)
	in.moved = make(chan struct{})
}

// Read implements io.Reader for the program's side.
func (in *input) Read(p []byte) (int, error) {
	for {
		in.mu.Lock()
		if len(in.buf) > 0 {
			n := copy(p, in.buf)
			in.mu.Unlock()
			in.change(func() { in.buf = in.buf[n:] })
			return n, nil
		}
		over, moved := in.eof || in.closed, in.moved
		in.mu.Unlock()
		if over {
			return 0, io.EOF
		}
		<-moved
	}
}

// write hands data to the program, waiting for room, and closes its input
// afterwards if eof.
func (in *input) write(ctx context.Context, data []byte, eof bool) error {
	for {
		in.mu.Lock()
		over, room, moved := in.eof || in.closed, inputBytes-len(in.buf), in.moved
		in.mu.Unlock()
		if over {
			return cove.Errorf(cove.Conflict, "the program's input is closed")
		}
		n := min(room, len(data))
		if n > 0 || len(data) == 0 {
			last := n == len(data)
			in.change(func() {
				in.buf = append(in.buf, data[:n]...)
				in.eof = last && eof
			})
			if data = data[n:]; last {
				return nil
			}
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close ends the input because the program is gone.
func (in *input) close() {
	in.change(func() { in.closed, in.buf = true, nil })
}
