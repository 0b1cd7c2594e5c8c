package client

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/cove-sandbox/cove"
)

// upload is a body on its way. The transport waits for a body that blocks even
// when its request is over; this one lets go at once, and leaves behind no more
// than the one read of the caller's that is under way.
type upload struct {
	*io.PipeReader

	stop func() bool

	mu  sync.Mutex
	err error // what the caller's reader failed with; guarded by mu
}

// newUpload returns a body that fill writes. It ends with ctx.
func newUpload(ctx context.Context, fill func(io.Writer) error) *upload {
	r, w := io.Pipe()
	u := &upload{PipeReader: r}
	u.stop = context.AfterFunc(ctx, func() { _ = r.CloseWithError(ctx.Err()) })
	go func() {
		err := fill(w)
		u.mu.Lock()
		u.err = err
		u.mu.Unlock()
		_ = w.CloseWithError(err)
	}()
	return u
}

// blame ends the upload and returns the error of its request: that of the
// caller's reader where it is the reason, since the server only knows that the
// body broke off.
func (u *upload) blame(ctx context.Context, err error) error {
	u.stop()
	u.mu.Lock()
	own := u.err
	u.mu.Unlock()
	_ = u.Close()
	if over := gone(ctx); err != nil && over != nil {
		return over // the body may have been let go before the request knew
	}
	if err == nil || own == nil || errors.Is(own, io.ErrClosedPipe) {
		return err
	}
	if ours, ok := errors.AsType[*cove.Error](own); ok {
		return ours
	}
	return cove.Wrap(cove.CodeOf(own), own, "what was to be sent could not be read")
}
