package kernel

import (
	"io"

	"github.com/cove-sandbox/cove"
)

// Ear is the host's end of a driver's streams, with a run under way.
type Ear struct {
	x *exchange
	r *run
}

// NewEar returns one whose run has the number 1.
func NewEar(out func(cove.Chunk)) *Ear {
	e := &Ear{x: newExchange(), r: newRun(1, cove.KernelRun{OnOutput: out})}
	e.x.marker = []byte("\x1emark")
	e.x.begin(e.r)
	return e
}

// Stdout and Stderr are what a program writes to.
func (e *Ear) Stdout() io.Writer { return &e.x.out }

// Stderr is the other one.
func (e *Ear) Stderr() io.Writer { return &e.x.err }

// Held is how many bytes are kept back.
func (e *Ear) Held() int {
	return max(len(e.x.out.held), len(e.x.err.held), e.x.out.bytes, e.x.err.bytes, e.x.strays)
}

// Done reports whether the run has ended.
func (e *Ear) Done() bool {
	select {
	case <-e.r.done:
		return true
	default:
		return false
	}
}

// End ends the run and returns what it heard.
func (e *Ear) End() *cove.CodeResult {
	e.x.end(e.r)
	out := e.r.result()
	out.Wall = 0
	return out
}

// Again begins another run.
func (e *Ear) Again(out func(cove.Chunk)) {
	e.r = newRun(e.r.seq+1, cove.KernelRun{OnOutput: out})
	e.x.begin(e.r)
}

// Exported for tests.
var (
	List   = list
	Unlist = unlist
)

// Bounds.
const (
	MaxStray = maxStray
	MaxQueue = maxQueue
	MaxFrame = maxFrame
)
