package bucket

import (
	"context"
	"errors"
	"io"
	"time"
)

// patience is how long a server may be silent, in either direction.
const patience = 2 * time.Minute

var errSilent = errors.New("the server was silent for too long")

// watch ends a context when nothing has moved for a while.
type watch struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
	wait   time.Duration
}

func newWatch(ctx context.Context, wait time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watch{timer: time.AfterFunc(wait, func() { cancel(errSilent) }), cancel: cancel, wait: wait}
}

func (w *watch) moved() { w.timer.Reset(w.wait) }

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(context.Canceled)
}

// watched tells the watch of every piece that is read.
type watched struct {
	io.Reader
	w *watch
}

func (r watched) Read(p []byte) (int, error) {
	r.w.moved()
	return r.Reader.Read(p)
}
