package engine

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// pace hands the output and the values of code to its caller, who may be slow, and goes on without
// him when the time of the code is over: others wait for the interpreter.
type pace struct {
	out  func(cove.Chunk)      // nil: nobody listens
	show func(cove.Rich, bool) // nil: nobody listens
	next chan heard
	late chan struct{} // closed when the time is over
	done chan struct{} // closed when the caller has heard all that he will
	end  *time.Timer   // nil until the code begins
}

// heard is a piece of output, or a value.
type heard struct {
	chunk cove.Chunk
	value cove.Rich // nil: it is output
	main  bool
}

// ahead is how many pieces the code may be before its caller.
const ahead = 16

func newPace(out func(cove.Chunk), show func(cove.Rich, bool)) *pace {
	return &pace{out: out, show: show, next: make(chan heard, ahead), late: make(chan struct{}), done: make(chan struct{})}
}

// ear is where chunks go; nil where nobody listens.
func (p *pace) ear() func(cove.Chunk) {
	if p.out == nil {
		return nil
	}
	return func(c cove.Chunk) { p.hear(heard{chunk: c}) }
}

// eye is where values go; nil where nobody looks.
func (p *pace) eye() func(cove.Rich, bool) {
	if p.show == nil {
		return nil
	}
	return func(v cove.Rich, main bool) { p.hear(heard{value: v, main: main}) }
}

// begin starts the time.
func (p *pace) begin(wall time.Duration) {
	if p.out == nil && p.show == nil {
		return
	}
	p.end = time.AfterFunc(wall, func() { close(p.late) })
	go func() {
		defer close(p.done)
		for h := range p.next {
			if h.value != nil {
				p.show(h.value, h.main)
			} else {
				p.out(h.chunk)
			}
		}
	}()
}

// hear waits until there is room for a piece, as long as there is time.
func (p *pace) hear(h heard) {
	select {
	case p.next <- h:
	case <-p.late:
		select { // who keeps up misses nothing
		case p.next <- h:
		default:
		}
	}
}

// close waits for the caller. Nothing may be heard any more.
func (p *pace) close() {
	if p.end != nil {
		p.end.Stop()
		close(p.next)
		<-p.done
	}
}
