package httpapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// upload is the body of a request. A client that stops sending, or goes away
// in the middle, is an error that says so: what reads it must never take the
// half that came for the whole.
type upload struct {
	c     *call
	limit time.Duration
	whole bool // limit is for the whole body and set already, not for each read
	calm  func()

	mu  sync.Mutex // a reader that blocks may outlive the call that it was given to
	err error      // what ended it, but for io.EOF; guarded by mu
}

func (u *upload) Read(p []byte) (int, error) {
	if u.calm == nil {
		u.calm = sync.OnceFunc(u.c.alert())
	}
	if !u.whole {
		_ = u.c.control.SetReadDeadline(time.Now().Add(u.limit))
	}
	if err := cutOff(u.c.r.Context()); err != nil { // after the deadline, which would undo the one that wakes us
		return 0, u.failed(err)
	}
	n, err := u.c.r.Body.Read(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		u.calm()
		u.c.read.Store(true)
		_ = u.c.control.SetReadDeadline(time.Time{})
		return n, io.EOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, u.failed(cove.Wrap(cove.Timeout, err, "the body did not arrive within %s; send it again", u.limit))
	}
	return n, u.failed(cove.Wrap(cove.Canceled, err, "the client went away before its body was whole"))
}

func (u *upload) failed(err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.err = err
	return err
}

// upload returns the body of the request as a stream.
func (c *call) upload() *upload { return &upload{c: c, limit: c.api.Stall} }

// settle ends a request whose body may not have been read whole. It returns
// the body's own error where that is the reason for err.
func (u *upload) settle(err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil && u.err != nil {
		return u.err
	}
	return err
}

// unread reports whether the client may still be sending a body.
func (c *call) unread() bool { return !c.read.Load() && c.r.Body != http.NoBody }

// refuse answers with err at once, whether or not the body has been read.
func (c *call) refuse(err error) {
	if !c.unread() || c.w.status != 0 {
		c.respond(err)
		return
	}
	intake.Refuse(c.w, c.r, min(intake.Linger, c.api.Stall), func() { c.respond(err) })
}
