package engine

import (
	"context"
	"io"
	"sync"
	"time"

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
	left   bool          // guarded by mu; this process goes, and the program does not
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
		over, left, moved := in.eof || in.closed, in.left, in.moved
		in.mu.Unlock()
		switch {
		case over:
			return 0, io.EOF
		case left:
			return 0, errLetGo
		}
		<-moved
	}
}

// write hands data to the program, waiting for room, and closes its input
// afterwards if eof.
func (in *input) write(ctx context.Context, data []byte, eof bool) error {
	for {
		in.mu.Lock()
		over, left, room, moved := in.eof || in.closed, in.left, inputBytes-len(in.buf), in.moved
		in.mu.Unlock()
		switch {
		case over:
			return cove.Errorf(cove.Conflict, "the program's input is closed")
		case left:
			return shuttingDown()
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

// letGo ends the input for this process only. The program may take a moment for
// what was promised to it already.
func (in *input) letGo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTime)
	defer cancel()
	in.change(func() { in.left = true })
	for {
		in.mu.Lock()
		waits, moved := len(in.buf) > 0 && !in.closed, in.moved
		in.mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// handOverTime is how long a server that stops waits for a program to read.
const handOverTime = 200 * time.Millisecond

// close ends the input because the program is gone.
func (in *input) close() {
	in.change(func() { in.closed, in.buf = true, nil })
}
