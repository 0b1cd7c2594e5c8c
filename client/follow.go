package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// follow sends a request and yields the events of its answer, up to and with
// one that is named in last. An error that the server tells of, and a stream
// that ends before that, are yielded as the last element.
func (c *Client) follow(ctx context.Context, a ask, last ...string) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		a := a
		a.accept = asEvents
		resp, err := c.do(ctx, a)
		if err != nil {
			yield(frame{}, err)
			return
		}
		defer resp.Body.Close() //nolint:errcheck // only read
		watched := c.watch(resp.Body, cancel)
		defer watched.alarm.Stop()
		for f, err := range frames(watched, maxAnswer) {
			switch {
			case err != nil:
				yield(frame{}, c.broken(ctx, err))
				return
			case f.name == wire.OnError:
				yield(frame{}, c.told(resp, f))
				return
			}
			if !yield(f, nil) || slices.Contains(last, f.name) {
				return
			}
		}
		yield(frame{}, c.broken(ctx, io.ErrUnexpectedEOF))
	}
}

// told is the error in an event.
func (c *Client) told(resp *http.Response, f frame) error {
	var p wire.Problem
	if json.Unmarshal(f.data, &p) != nil || !p.Known() {
		return c.foreign(resp)
	}
	return p.Cove()
}

// watched is a stream whose server must give signs of life. Only the time in
// which we wait for it counts: a slow consumer is not the server's fault.
type watched struct {
	r     io.Reader
	alarm *time.Timer
	limit time.Duration
}

func (c *Client) watch(r io.Reader, cancel context.CancelCauseFunc) *watched {
	w := &watched{r: r, limit: c.silence}
	w.alarm = time.AfterFunc(c.silence, func() {
		cancel(cove.Errorf(cove.Unavailable, "cove at %s has given no sign of life for %s", c.name, c.silence).Remedy("%s", c.remedy))
	})
	return w
}

func (w *watched) Read(p []byte) (int, error) {
	w.alarm.Reset(w.limit)
	n, err := w.r.Read(p)
	w.alarm.Stop()
	return n, err
}

// parse reads the data of an event.
func parse[W any](c *Client, f frame) (W, error) {
	var w W
	if err := json.Unmarshal(f.data, &w); err != nil {
		return w, cove.Wrap(cove.Unavailable, err, "%s sent an event %.40q that Cove does not send", c.name, f.name).Remedy("check the URL and the version of the server")
	}
	return w, nil
}

// feed yields the elements of a stream whose events are all of one name.
func feed[W, T any](ctx context.Context, c *Client, a ask, name string, back func(W) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		for f, err := range c.follow(ctx, a, wire.OnEnd) {
			if err != nil {
				yield(zero, err)
				return
			}
			if f.name != name {
				continue
			}
			w, err := parse[W](c, f)
			if err != nil {
				yield(zero, err)
				return
			}
			if !yield(back(w), nil) {
				return
			}
		}
	}
}
