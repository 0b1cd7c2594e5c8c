package e2bapi

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// body is what a client uploads. One that stops sending, or goes away in the middle, is
// an error: nobody must take the half that came for the whole.
type body struct {
	c     *call
	unset func() bool

	mu   sync.Mutex
	err  error // what ended it, but for io.EOF; guarded by mu
	over bool  // the call is over, though somebody may still read; guarded by mu
}

// upload returns the body of the call. It is closed when the call is over.
func (c *call) upload() *body {
	b := &body{c: c}
	// A read under way does not look at the context.
	b.unset = context.AfterFunc(c.r.Context(), func() { _ = c.control().SetReadDeadline(time.Now()) })
	return b
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if err := b.begin(); err != nil {
		return 0, err
	}
	n, err := b.c.r.Body.Read(p)
	switch cause := context.Cause(b.c.r.Context()); {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		b.c.read.Store(true)
		return n, io.EOF
	case cause != nil:
		return n, b.failed(cove.Wrap(cove.Canceled, cause, "the call was ended before its body was whole"))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, b.failed(cove.Wrap(cove.Timeout, err, "the body stopped for %s", b.c.h.cfg.Stall).Remedy("send it again"))
	}
	return n, b.failed(cove.Wrap(cove.Canceled, err, "the client went away before its body was whole"))
}

// begin gives the next read its time.
func (b *body) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return cove.Errorf(cove.Canceled, "the call is over")
	}
	_ = b.c.control().SetReadDeadline(time.Now().Add(b.c.h.cfg.Stall))
	if cause := context.Cause(b.c.r.Context()); cause != nil { // after the deadline, which undoes the one that wakes us
		b.err = cove.Wrap(cove.Canceled, cause, "the call was ended before its body was whole")
		return b.err
	}
	return nil
}

func (b *body) failed(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	return err
}

// settle ends the use of the body. It returns the body's own error where that is the
// reason for err.
func (b *body) settle(err error) error {
	b.unset()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	_ = b.c.control().SetReadDeadline(time.Time{})
	if err != nil && b.err != nil {
		return b.err
	}
	return err
}
