package fake

import "io"

// chunkSize is how much is read or copied at a time.
const chunkSize = 32 << 10

// inlet is the caller's input. The reader may block for as long as it likes:
// it is read by a goroutine of its own, which starts with the first read, so
// that a program that asks for nothing takes nothing.
type inlet struct {
	null

	from   io.Reader
	over   <-chan struct{} // closed when the job is over
	turn   chan struct{}   // holds one while a process reads
	chunks chan []byte     // closed at the end of the input
	begun  bool            // guarded by turn
	rest   []byte          // guarded by turn
}

func newInlet(from io.Reader, over <-chan struct{}) *inlet {
	return &inlet{from: from, over: over, turn: make(chan struct{}, 1), chunks: make(chan []byte)}
}

func (in *inlet) read(p *proc, b []byte) (int, error) {
	select {
	case in.turn <- struct{}{}:
		defer func() { <-in.turn }()
	case <-p.dead:
		return 0, errDead
	}
	if !in.begun {
		in.begun = true
		go pump(in.from, in.chunks, in.over)
	}
	if len(in.rest) == 0 {
		select {
		case chunk, ok := <-in.chunks:
			if !ok {
				return 0, io.EOF
			}
			in.rest = chunk
		case <-in.over:
			return 0, io.EOF
		case <-p.dead:
			return 0, errDead
		}
	}
	n := copy(b, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// pump copies from a reader to a channel until one of them ends. A reader that
// blocks forever keeps the goroutine: nobody can interrupt it.
func pump(from io.Reader, to chan<- []byte, over <-chan struct{}) {
	defer close(to)
	for {
		buf := make([]byte, chunkSize)
		n, err := from.Read(buf)
		if n > 0 {
			select {
			case to <- buf[:n]:
			case <-over:
				return
			}
		}
		if err != nil {
			return
		}
	}
}
