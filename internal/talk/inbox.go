package talk

import (
	"context"
	"io"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Inbox is the standard input of a program. Who sends does not wait for the program
// to read, so that nobody hangs on one that does not: two messages have room, such as
// a question and the request to leave it alone.
type Inbox struct {
	next chan []byte
	over chan struct{} // closed when nobody reads any more
	once sync.Once
	rest []byte // of what is being read
}

// NewInbox returns an empty one.
func NewInbox() *Inbox { return &Inbox{next: make(chan []byte, 2), over: make(chan struct{})} }

// Read implements [io.Reader].
func (i *Inbox) Read(p []byte) (int, error) {
	if len(i.rest) == 0 {
		select {
		case i.rest = <-i.next:
		case <-i.over:
			return 0, io.EOF
		}
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}

// Offer puts a message into the box, and reports whether there was room.
func (i *Inbox) Offer(message []byte) bool {
	select {
	case i.next <- message:
		return true
	default:
		return false
	}
}

// Send puts a message into the box. A program that has not read the ones before it
// makes it wait, as long as ctx.
func (i *Inbox) Send(ctx context.Context, message []byte) error {
	if i.Offer(message) {
		return nil
	}
	select {
	case i.next <- message:
		return nil
	case <-i.over:
		return cove.Errorf(cove.Unavailable, "the interpreter has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close tells the program that nothing more comes.
func (i *Inbox) Close() { i.once.Do(func() { close(i.over) }) }
