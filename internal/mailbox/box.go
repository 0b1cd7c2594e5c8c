//go:build linux

package mailbox

import (
	"slices"
	"sync"
	"time"
)

// maxPast is how many names of links are remembered.
const maxPast = 64

// box holds the link of a sandbox.
type box struct {
	uid int

	mu    sync.Mutex
	agent chan struct{} // closed when the agent has ended; nil before the first
	now   *link
	past  []string // what cannot be opened again: somebody else came after it
}

// open makes id the link. Asked again, it changes nothing.
func (b *box) open(id string) Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now != nil && b.now.id == id {
		return Answer{Status: Live}
	}
	if slices.Contains(b.past, id) {
		return Answer{Status: Gone}
	}
	b.end()
	l, err := b.begin(id)
	if err != nil {
		return Answer{Status: Gone, Data: []byte(err.Error())}
	}
	b.now = l
	return Answer{Status: Live}
}

// begin makes a link, and an agent where there is none. Called with mu held.
func (b *box) begin(id string) (*link, error) {
	over := b.agent == nil
	select {
	case <-b.agent:
		over = true
	default:
	}
	if over {
		proc, err := startAgent(b.uid)
		if err != nil {
			return nil, err
		}
		done := make(chan struct{})
		go func() {
			_, _ = proc.Wait()
			close(done)
		}()
		b.agent = done
	}
	return begin(id)
}

// end ends the link there is. Called with mu held.
func (b *box) end() {
	if b.now == nil {
		return
	}
	b.past = append(b.past, b.now.id)
	b.past = b.past[max(0, len(b.past)-maxPast):]
	b.now.end()
	b.now = nil
}

func (b *box) close(id string) Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now != nil && b.now.id == id {
		b.end()
	}
	return Answer{Status: Gone}
}

// link returns the link with that name, or nil.
func (b *box) link(id string) *link {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil || b.now.id != id {
		return nil
	}
	return b.now
}

// expire ends links whose lease is over, as long as we live.
func (b *box) expire(every time.Duration) {
	for range time.Tick(every) {
		b.tidy()
	}
}

// tidy ends the link if its lease is over.
func (b *box) tidy() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now != nil && b.now.idle() > Lease {
		b.end()
	}
}

// ask answers a question.
func (b *box) ask(q question) Answer {
	switch q.verb {
	case "open":
		return b.open(q.link)
	case "close":
		return b.close(q.link)
	}
	l := b.link(q.link)
	switch {
	case l == nil:
		return Answer{Status: Gone}
	case q.verb == "give":
		return l.give(q.at, q.data)
	}
	return l.take(q.at, q.wait)
}
