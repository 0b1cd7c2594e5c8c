package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/cove-sandbox/cove"
)

// watched lets the request end when its caller must not go on. The answer is
// called when the request is over.
func (c *call) watched() (over func()) {
	if c.api.Watch == nil {
		return func() {}
	}
	ctx, stop := c.api.Watch(c.r.Context(), c.who)
	c.r = c.r.WithContext(ctx)
	return stop
}

// alert wakes who waits for more of the body when the caller must not go on, until
// calm is called: a deadline that came later would break the connection's next
// request.
func (c *call) alert() (calm func()) {
	ctx, woken := c.r.Context(), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		if cutOff(ctx) != nil {
			_ = c.control.SetReadDeadline(time.Unix(1, 0))
		}
	})
	return func() {
		if !stop() {
			<-woken
		}
	}
}

// cutOff is why a request must not go on although its caller is there, or nil: the
// caller's key is good no more, or the server ends.
func cutOff(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, cove.Unauthenticated) || errors.Is(cause, cove.Unavailable) {
		return cause
	}
	return nil
}

// blame returns the reason for an error where it is that the caller must not go
// on: the platform only knows that somebody ended its context.
func (c *call) blame(err error) error {
	if err == nil {
		return nil
	}
	if cause := cutOff(c.r.Context()); cause != nil {
		return cause
	}
	if !c.who.May(cove.ScopeAdmin) {
		return c.api.Paths.Error(err)
	}
	return err
}
