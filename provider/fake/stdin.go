package fake

import (
	"errors"
	"io"
	"sync"
)

// chunkSize is how much is read or copied at a time.
const chunkSize = 32 << 10

// intake is where the input of a job comes from. The reader may block for as
// long as it likes: it is read by a goroutine of its own. Another reader may take
// its place when the job is kept.
type intake struct {
	over   <-chan struct{} // closed when the job is over
	kept   bool            // a reader that fails leaves the input open for the next one
	chunks chan []byte
	eof    chan struct{} // closed at the end of the input

	mu    sync.Mutex
	from  io.Reader // guarded by mu, as all below
	turn  int       // counts the readers
	asked bool      // somebody wants input, so that the reader is read
	ended bool      // eof is closed
}

func newIntake(from io.Reader, over <-chan struct{}, kept bool) *intake {
	return &intake{from: from, over: over, kept: kept, chunks: make(chan []byte), eof: make(chan struct{})}
}

// ask starts reading, so that a program that asks for nothing takes nothing.
func (in *intake) ask() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.asked {
		in.asked = true
		go in.pump(in.from, in.turn)
	}
}

// take goes on with another reader; nil ends the input.
func (in *intake) take(from io.Reader) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.turn++
	in.from = from
	switch {
	case from == nil:
		in.end()
	case in.asked:
		go in.pump(from, in.turn)
	}
}

// end closes the input for good. The caller holds mu.
func (in *intake) end() {
	if !in.ended {
		in.ended = true
		close(in.eof)
	}
}

// pump copies from a reader until one of them ends. A reader that blocks
// forever keeps the goroutine: nobody can interrupt it.
func (in *intake) pump(from io.Reader, turn int) {
	for {
		buf := make([]byte, chunkSize)
		n, err := from.Read(buf)
		if n > 0 {
			select {
			case in.chunks <- buf[:n]:
			case <-in.over:
				return
			}
		}
		if err == nil {
			continue
		}
		in.mu.Lock()
		if turn == in.turn && (!in.kept || errors.Is(err, io.EOF)) {
			in.end()
		}
		in.mu.Unlock()
		return
	}
}

// inlet is the caller's input as a stream of its own.
type inlet struct {
	null

	in   *intake
	turn chan struct{} // holds one while a process reads
	rest []byte        // guarded by turn
}

func newInlet(in *intake) *inlet { return &inlet{in: in, turn: make(chan struct{}, 1)} }

func (l *inlet) read(p *proc, b []byte) (int, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-p.dead:
		return 0, errDead
	}
	l.in.ask()
	if len(l.rest) == 0 {
		select {
		case l.rest = <-l.in.chunks:
		case <-l.in.eof:
			return 0, io.EOF
		case <-l.in.over:
			return 0, io.EOF
		case <-p.dead:
			return 0, errDead
		}
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
