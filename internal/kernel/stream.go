package kernel

import (
	"bytes"
	"slices"
	"sync"

	"github.com/cove-sandbox/cove"
)

// exchange is the host's end of the two streams of a driver. It tells frames from
// output, puts the two streams into one order where the driver knows it, and hands
// both to who listens.
type exchange struct {
	marker []byte

	mu       sync.Mutex // held while a listener is called
	out, err stream
	run      *run    // who listens; nil between runs
	stray    []stray // written when nobody listened
	strays   int     // bytes of it

	hello   chan []string // what H told
	adopted chan []string // what A told
	pong    chan []string // what P told
	last    string        // last words

	rest   position // where the first of the stray output begins
	marked position // as it was last recorded
	behind func()   // told once that much was read since then; nil unless recorded
}

// position is how far the two streams have been handled, to the frame.
type position struct {
	Out      int64  `json:"out"`
	Err      int64  `json:"err"`
	OutPoint uint32 `json:"out_point,omitempty"`
	ErrPoint uint32 `json:"err_point,omitempty"`
}

// stray is output that came between two runs.
type stray struct {
	from cove.Stream
	data []byte
}

// stream is one of the two. It is the writer that the program's output goes to.
type stream struct {
	x    *exchange
	name cove.Stream

	came  int64  // bytes
	done  int64  // of them handled
	held  []byte // the end of what came, which may become a frame
	point uint32 // the last point of this stream that has passed
	after uint32 // it waits for this point of the other one
	queue []item // what waits
	bytes int    // of output in it
}

// item is output, or a frame where frame.kind is set.
type item struct {
	frame frame
	data  []byte
	end   int64 // where it ends in its stream
}

func newExchange() *exchange {
	x := &exchange{marker: newMarker(), hello: make(chan []string, 1), adopted: make(chan []string, 1), pong: make(chan []string, 1)}
	x.out.x, x.out.name = x, cove.Stdout
	x.err.x, x.err.name = x, cove.Stderr
	return x
}

// Write implements [io.Writer]. It never fails: nothing a program writes is wrong.
func (s *stream) Write(p []byte) (int, error) {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	data := p
	if len(s.held) > 0 {
		data = append(s.held, p...)
		s.held = nil
	}
	s.came += int64(len(p))
	s.split(data)
	s.x.overflow()
	return len(p), nil
}

// split takes data apart. What it keeps, it copies.
func (s *stream) split(data []byte) {
	marker := s.x.marker
	for len(data) > 0 {
		at := s.came - int64(len(data))
		i := bytes.Index(data, marker)
		if i < 0 {
			n := len(data) - overlap(data, marker)
			s.take(item{data: data[:n], end: at + int64(n)})
			s.held = slices.Clone(data[n:])
			return
		}
		s.take(item{data: data[:i], end: at + int64(i)})
		f, n, what := parse(data[i+len(marker):], len(marker))
		switch what {
		case unfinished:
			s.held = slices.Clone(data[i:])
			return
		case noFrame:
			s.take(item{data: data[i : i+len(marker)], end: at + int64(i+len(marker))})
		case aFrame:
			s.take(item{frame: f, end: at + int64(i+len(marker)+n)})
		}
		data = data[i+len(marker)+n:]
	}
}

// overlap returns how many bytes at the end of data may be the start of a marker.
func overlap(data, marker []byte) int {
	tail := data[max(0, len(data)-len(marker)+1):]
	for {
		i := bytes.IndexByte(tail, marker[0])
		if i < 0 {
			return 0
		}
		tail = tail[i:]
		if bytes.HasPrefix(marker, tail) {
			return len(tail)
		}
		tail = tail[1:]
	}
}

// take handles an item, or lets it wait for its turn.
func (s *stream) take(i item) {
	if i.frame.kind == 0 && len(i.data) == 0 {
		return
	}
	if s.after == 0 {
		s.handle(i)
		return
	}
	s.queue = append(s.queue, item{frame: frame{kind: i.frame.kind, part: i.frame.part, seq: i.frame.seq, body: slices.Clone(i.frame.body)}, data: slices.Clone(i.data), end: i.end})
	s.bytes += len(i.data) + len(i.frame.body) + maxHeader
	if s.bytes > maxQueue {
		s.drain() // who waits for so long waits for nothing
	}
}

// drain handles what waited, as far as it need not wait again.
func (s *stream) drain() {
	queue := s.queue
	s.queue, s.bytes, s.after = nil, 0, 0
	for _, i := range queue {
		s.take(i)
	}
}

func (s *stream) other() *stream {
	if s.name == cove.Stdout {
		return &s.x.err
	}
	return &s.x.out
}

func (s *stream) handle(i item) {
	f := i.frame
	if f.kind == sayAfter && f.seq > s.other().point {
		s.after = f.seq // and it is not handled before the other stream is there
		return
	}
	if f.kind == 0 && s.x.run == nil && len(s.x.stray) == 0 {
		s.x.rest = s.x.position()
	}
	s.done = i.end
	switch f.kind {
	case 0:
		s.x.deliver(s.name, i.data)
	case sayPoint:
		s.point = f.seq
		if o := s.other(); o.after != 0 && o.after <= s.point {
			o.drain()
		}
	case sayHello:
		tell(s.x.hello, f.body)
	case sayAdopted:
		tell(s.x.adopted, f.body)
	case sayPong:
		tell(s.x.pong, f.body)
	case sayLast:
		if words, ok := unlist(f.body, 1); ok && len(words) == 1 {
			s.x.last = clean(words[0], maxSentence)
		}
	case sayMark, sayValue, sayMain, sayError, sayDone:
		if r := s.x.run; r != nil && r.seq == f.seq && r.hear(f, s.name) {
			s.x.run = nil
			close(r.done)
		}
	case sayAfter, askBegin, askRun, askCalm, askEnv:
	}
}

// tell hands a list to who waits for it. A second one is nobody's.
func tell(to chan []string, body []byte) {
	if words, ok := unlist(body, 8); ok {
		select {
		case to <- words:
		default:
		}
	}
}

// deliver hands output to who listens, or keeps some of it for who listens next.
func (x *exchange) deliver(from cove.Stream, data []byte) {
	if x.run != nil {
		x.run.write(from, data)
		return
	}
	n := min(len(data), maxStray-x.strays)
	if n > 0 {
		x.stray = append(x.stray, stray{from, slices.Clone(data[:n])})
		x.strays += max(n, maxHeader)
	}
}

// position is how far both streams have been handled. The caller holds mu.
func (x *exchange) position() position {
	return position{x.out.done, x.err.done, x.out.point, x.err.point}
}

// begin makes r listen, to what was written before it first, and returns where that
// begins.
func (x *exchange) begin(r *run) position {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := x.position()
	if len(x.stray) > 0 {
		at = x.rest
	}
	for _, s := range x.stray {
		r.write(s.from, s.data)
	}
	x.stray, x.strays, x.run = nil, 0, r
	return at
}

// end makes r hear no more than what has come, also what waited, and returns the
// driver's last words.
func (x *exchange) end(r *run) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range []*stream{&x.out, &x.err} {
		for len(s.queue) > 0 {
			s.drain()
		}
		if x.run == r && len(s.held) > 0 {
			x.deliver(s.name, s.held)
			s.held, s.done = nil, s.came
		}
	}
	if x.run == r {
		x.run = nil
	}
	return x.last
}
