//go:build linux

package e2b

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
)

// link is the standard input and output of a program in a machine, as one stream
// of bytes. What is written waits in a small queue while the piece before it is on
// its way, so that a far machine is not asked once for every few bytes.
type link struct {
	m   *machine
	pid int
	out *stream

	rest []byte // of what was read
	said []byte // the end of what the program said about itself

	mu     sync.Mutex
	change *sync.Cond
	queue  []byte // guarded by mu
	failed error  // guarded by mu: why nothing more can be written
	cancel context.CancelFunc
	sent   chan struct{} // closed when the sender is done
}

const (
	maxQueue = 1 << 20
	maxPiece = 512 << 10
)

func newLink(m *machine, pid int, out *stream) *link {
	l := &link{m: m, pid: pid, out: out, sent: make(chan struct{})}
	l.change = sync.NewCond(&l.mu)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go l.send(ctx)
	return l
}

// Read returns what the program wrote.
func (l *link) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		e, err := l.out.next()
		switch {
		case err != nil:
			return 0, l.over(err)
		case e.End != nil:
			return 0, l.over(fmt.Errorf("the agent ended with code %d: %w", e.End.ExitCode, io.ErrUnexpectedEOF))
		case e.Data != nil:
			l.rest = e.Data.Stdout
			l.said = append(l.said, e.Data.Stderr...)
			l.said = l.said[max(0, len(l.said)-maxSaid):]
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// over is the error of a link that has ended, with what the agent said last.
func (l *link) over(err error) error {
	if len(l.said) > 0 {
		return fmt.Errorf("%w: %.200q", err, l.said)
	}
	return err
}

// Write queues what the program is to read.
func (l *link) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := 0; ; {
		for l.failed == nil && n < len(p) && len(l.queue) >= maxQueue {
			l.change.Wait()
		}
		if l.failed != nil {
			return n, l.failed
		}
		piece := p[n:min(len(p), n+maxQueue-len(l.queue))]
		l.queue = append(l.queue, piece...)
		n += len(piece)
		l.change.Broadcast()
		if n == len(p) {
			return n, nil
		}
	}
}

// send hands the queue to the machine, one piece after the other.
func (l *link) send(ctx context.Context) {
	defer close(l.sent)
	for {
		piece := l.piece()
		if piece == nil {
			return
		}
		in := struct {
			Process selector `json:"process"`
			Input   struct {
				Stdin []byte `json:"stdin"`
			} `json:"input"`
		}{Process: selector{l.pid}}
		in.Input.Stdin = piece
		if err := l.m.rpc(ctx, procInput, in, nil); err != nil {
			// Whether it arrived nobody knows, so nothing can follow it.
			l.fail(err)
			l.out.close()
			return
		}
	}
}

// piece waits for something to send; nil when the link has ended.
func (l *link) piece() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.failed == nil && len(l.queue) == 0 {
		l.change.Wait()
	}
	if l.failed != nil {
		return nil
	}
	piece := l.queue[:min(len(l.queue), maxPiece)]
	l.queue = append([]byte(nil), l.queue[len(piece):]...)
	l.change.Broadcast()
	return piece
}

func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
	l.change.Broadcast()
}

// Close ends the link, and not the program.
func (l *link) Close() error {
	l.fail(os.ErrClosed)
	l.cancel()
	l.out.close()
	<-l.sent
	return nil
}
