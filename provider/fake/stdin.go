package fake

import (
	"errors"
	"io"
	"sync"
)

// chunkSize is how much is read or copied at a time.
const chunkSize = 32 << 10

// pipeChunks is how much input waits for a program that does not read yet: as
// much as in a pipe of the kernel, so that who writes need not wait for it.
const pipeChunks = 64 << 10 / chunkSize

// intake is where the input of a job comes from. The reader may block for as
// long as it likes: it is read by a goroutine of its own. Another reader may take
// its place when the job is kept.
type intake struct {
	over   <-chan struct{} // closed when the job is over
	broke  func()          // called when a reader fails; nil leaves the input open for the next one
	chunks chan []byte
	eof    chan struct{} // closed at the end of the input

	mu    sync.Mutex
	turn  int  // counts the readers; guarded by mu, as is ended
	ended bool // eof is closed
}

func newIntake(over <-chan struct{}, broke func()) *intake {
	return &intake{over: over, broke: broke, chunks: make(chan []byte, pipeChunks), eof: make(chan struct{})}
}

// take begins, or goes on, with a reader; nil ends the input.
func (in *intake) take(from io.Reader) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.turn++
	if from == nil {
		in.end()
		return
	}
	go in.pump(from, in.turn)
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
		defer in.mu.Unlock()
		switch {
		case turn != in.turn:
		case errors.Is(err, io.EOF):
			in.end()
		case in.broke != nil:
			in.broke()
		}
		return
	}
}

// next waits for input until there is no more, or until dead is closed. What
// came before the end is read before it.
func (in *intake) next(dead <-chan struct{}) ([]byte, error) {
	select {
	case chunk := <-in.chunks:
		return chunk, nil
	case <-in.eof:
	case <-in.over:
	case <-dead:
		return nil, errDead
	}
	select {
	case chunk := <-in.chunks:
		return chunk, nil
	default:
		return nil, io.EOF
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
	if len(l.rest) == 0 {
		rest, err := l.in.next(p.dead)
		if err != nil {
			return 0, err
		}
		l.rest = rest
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
