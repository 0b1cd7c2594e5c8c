//go:build linux

package warden

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Warden is the process, seen from who asks it. It is started by the first call,
// and anew by the first one after it ended. Methods are safe for concurrent use.
type Warden struct {
	path  string
	flags []string

	mu     sync.Mutex
	link   *link // nil if none was needed up to now
	closed bool
}

// New returns a warden that is not started yet. path is that of cove-gvisor, and
// flags are the global flags of runsc.
func New(path string, flags ...string) *Warden { return &Warden{path: path, flags: flags} }

// Enter starts a program in a sandbox and returns when it runs. Nobody waits for
// the program: what it does, its streams tell. They stay the caller's to close.
func (w *Warden) Enter(ctx context.Context, id string, p Program, s Streams) error {
	return w.call(ctx, request{Verb: enter, Sandbox: id, Program: &p}, s.In, s.Out, s.Err)
}

// Pause stops everything in a sandbox.
func (w *Warden) Pause(ctx context.Context, id string) error {
	return w.call(ctx, request{Verb: pause, Sandbox: id})
}

// Resume lets a sandbox go on that was paused.
func (w *Warden) Resume(ctx context.Context, id string) error {
	return w.call(ctx, request{Verb: resume, Sandbox: id})
}

// Checkpoint writes the memory of a sandbox into a directory, which is there and
// empty, and which runsc restore can read. The sandbox goes on.
func (w *Warden) Checkpoint(ctx context.Context, id, image string) error {
	return w.call(ctx, request{Verb: checkpoint, Sandbox: id, Image: image})
}

// Remove ends a sandbox, whatever state it is in. One that is not there is no
// error.
func (w *Warden) Remove(ctx context.Context, id string) error {
	return w.call(ctx, request{Verb: remove, Sandbox: id})
}

// Close ends the process. Sandboxes live on.
func (w *Warden) Close() error {
	w.mu.Lock()
	l := w.link
	w.link, w.closed = nil, true
	w.mu.Unlock()
	if l != nil {
		l.close()
	}
	return nil
}

// call asks for something and waits until it is done. A call whose context ends is
// not taken back: it may still be done.
func (w *Warden) call(ctx context.Context, r request, files ...*os.File) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l, err := w.reach()
	if err != nil {
		return err
	}
	a, err := l.call(ctx, r, files)
	switch {
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case errors.Is(err, errTooLong):
		return cove.Wrap(cove.Invalid, err, "the call to gVisor's warden is too long")
	case err != nil:
		return cove.Wrap(cove.Unavailable, err, "gVisor's warden does not answer").
			Remedy("try again: it is started anew")
	case a.Gone:
		return cove.Wrap(cove.NotFound, errors.New(a.Fault), "gVisor has no such sandbox")
	case a.Fault != "":
		return cove.Wrap(cove.Unavailable, errors.New(a.Fault), "gVisor did not %s the sandbox", r.Verb)
	}
	return nil
}

// reach returns a process that answers, as far as is known.
func (w *Warden) reach() (*link, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, cove.Errorf(cove.Unavailable, "gVisor's warden is closed")
	}
	if w.link != nil {
		if !w.link.over() {
			return w.link, nil
		}
		<-w.link.done // there is never more than one
	}
	l, err := start(w.path, w.flags)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "gVisor's warden cannot be started").
			Remedy("see whether %s can be executed", w.path)
	}
	w.link = l
	return l, nil
}
