package e2bapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// The two forms of a remote call: one message each way, or frames.
const (
	unaryType  = "application/json"
	streamType = "application/connect+json"
)

// errPassed is the deadline of a call, in the words that clients know.
var errPassed = cove.Wrap(cove.Timeout, context.DeadlineExceeded, "context deadline exceeded")

// unary answers a call of one message with one message. An error is for the
// caller to answer with, unless an answer has begun.
func unary[In, Out any](c *call, do func(context.Context, In) (Out, error)) error {
	if err := c.speaks(unaryType); err != nil {
		return err
	}
	var in In
	body, err := c.whole()
	if err != nil {
		return err
	}
	if err := understand(body, &in); err != nil {
		return err
	}
	ctx, cancel, err := c.bounded()
	if err != nil {
		return err
	}
	defer cancel()
	out, err := do(ctx, in)
	if err != nil {
		return because(ctx, err)
	}
	arrived := false
	if s, ok := any(out).(settled); ok {
		defer func() { s.settle(arrived) }()
	}
	text, err := json.Marshal(out)
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the answer cannot be written; the log has the cause")
	}
	h := c.w.Header()
	h.Set("Content-Type", unaryType)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	_ = c.control().SetWriteDeadline(time.Now().Add(c.h.cfg.Stall))
	c.w.WriteHeader(http.StatusOK)
	_, err = c.w.Write(text)
	if err == nil {
		err = c.control().Flush()
	}
	arrived = err == nil && c.r.Context().Err() == nil // or the client is gone
	return nil
}

// settled is a message that is told whether it was sent while its client was there. What
// becomes of it on its way after that nobody knows.
type settled interface{ settle(arrived bool) }

// stream answers a call of one message with as many as do sends. ctx ends with
// the call's deadline, and when the client is gone or does not read. How do ended
// is the last frame.
func stream[In any](c *call, do func(ctx context.Context, in In, out *streamWriter) error) error {
	return streaming(c, func(ctx context.Context, in In, out *streamWriter) error {
		ctx, cancel, err := c.boundedBy(ctx)
		if err != nil {
			return err
		}
		defer cancel()
		return because(ctx, do(ctx, in, out))
	})
}

// streaming is stream for what has a use of its own for the deadline.
func streaming[In any](c *call, do func(ctx context.Context, in In, out *streamWriter) error) error {
	if err := c.speaks(streamType); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	out := newStreamWriter(c, cancel)
	defer out.close()
	in, err := only[In](c)
	if err == nil {
		err = because(ctx, do(ctx, in, out))
	}
	out.end(err)
	return err
}

// clientStream answers a call of many messages with an empty one. next returns
// io.EOF after the last. A client that says nothing for the time of a stall is
// taken to be gone.
func clientStream[In any](c *call, do func(ctx context.Context, next func() (In, error)) error) error {
	if err := c.speaks(streamType); err != nil {
		return err
	}
	_ = c.control().EnableFullDuplex() // HTTP/2 always is
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	out := newStreamWriter(c, cancel)
	defer out.close()
	ctx, stop, err := c.boundedBy(ctx)
	if err == nil {
		defer stop()
		// A read under way does not look at the context.
		wake := context.AfterFunc(ctx, func() { _ = c.control().SetReadDeadline(time.Now()) })
		err = because(ctx, do(ctx, func() (In, error) { return nextMessage[In](ctx, c) }))
		wake()
	}
	if err == nil {
		err = out.hold(empty{})
	}
	if err != nil && c.r.ProtoMajor == 1 {
		// The client has more to say, and nobody knows where that ends.
		c.w.Header().Set("Connection", "close")
	}
	out.end(err)
	if err != nil {
		c.hearOut()
	}
	return err
}

// hearOut takes what a client still sends, for a moment: one whose words nobody
// takes may not get to read the answer.
func (c *call) hearOut() {
	_ = c.control().SetReadDeadline(time.Now().Add(hearTime))
	_, _ = io.CopyN(io.Discard, c.r.Body, maxFrame) // whatever it is
	_ = c.control().SetReadDeadline(time.Now())     // the server must not wait for the rest
}

const hearTime = time.Second

// nextMessage reads one of many messages.
func nextMessage[In any](ctx context.Context, c *call) (in In, err error) {
	_ = c.control().SetReadDeadline(time.Now().Add(c.h.cfg.Stall))
	if ctx.Err() != nil {
		return in, context.Cause(ctx)
	}
	c.memory.Free() // of the message before, which was taken
	c.memory = c.h.cfg.Bodies.Body(c.payer(c.who))
	flags, message, err := readFrame(c.memory.Reader(ctx, c.r.Body), maxFrame)
	switch {
	case ctx.Err() != nil:
		return in, context.Cause(ctx)
	case errors.Is(err, io.EOF):
		return in, io.EOF
	case err != nil && cove.CodeOf(err) == cove.Internal:
		return in, cove.Wrap(cove.Canceled, err, "the client went away in the middle of the call")
	case err != nil:
		return in, err
	case flags&flagEnd != 0:
		return in, cove.Errorf(cove.Invalid, "a client does not send the last frame of a stream")
	}
	return in, understand(message, &in)
}

// only reads the one message of a call in frames, and that nothing follows it:
// what is answered before everything was read, some clients take for a broken
// connection.
func only[In any](c *call) (in In, err error) {
	body, err := c.whole()
	if err != nil {
		return in, err
	}
	r := bytes.NewReader(body)
	flags, message, err := readFrame(r, maxFrame)
	switch {
	case errors.Is(err, io.EOF):
		return in, cove.Errorf(cove.Invalid, "the call has no message")
	case err != nil:
		return in, err
	case flags&flagEnd != 0:
		return in, cove.Errorf(cove.Invalid, "a client does not send the last frame of a stream")
	case r.Len() > 0:
		return in, cove.Errorf(cove.Invalid, "the call has more than one message")
	}
	return in, understand(message, &in)
}

// readAll reads a body of no more than most bytes to its end.
func (c *call) readAll(most int64) ([]byte, error) {
	_ = c.control().SetReadDeadline(time.Now().Add(c.h.cfg.BodyTime))
	// The server watches the connection for the client going away; a deadline
	// left behind would look like that.
	defer func() { _ = c.control().SetReadDeadline(time.Time{}) }()
	text, err := c.memory.ReadAll(c.r.Context(), c.r.Body, c.r.ContentLength, most)
	c.read.Store(err == nil)
	if _, ours := errors.AsType[*cove.Error](err); err != nil && !ours {
		err = cove.Wrap(cove.Canceled, err, "the body did not arrive whole")
	}
	return text, err
}

// whole reads the message of a call to its end.
func (c *call) whole() ([]byte, error) {
	body, err := c.readAll(maxFrame + frameHead)
	if cove.ReasonOf(err) == intake.ReasonTooLarge {
		return nil, cove.Errorf(cove.Exhausted, "the message is longer than %d bytes", maxFrame+frameHead).Remedy("send it in parts")
	}
	return body, err
}

// understand reads a message. Fields that we do not know are left out: newer
// clients have more than older servers.
func understand(message []byte, in any) error {
	if err := intake.CheckJSON(message); err != nil {
		return err
	}
	if err := json.Unmarshal(message, in); err != nil {
		return cove.Wrap(cove.Invalid, err, "the body is not the JSON that this call takes")
	}
	return nil
}

// speaks reports a call in another form than the one it has here.
func (c *call) speaks(want string) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != want {
		err := cove.Errorf(cove.Unsupported, "%q is not understood here", clip(c.r.Header.Get("Content-Type"))).Remedy("send %s", want)
		c.answer(http.StatusUnsupportedMediaType, rpcProblemOf(err))
		return err
	}
	if coding := c.r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return cove.Errorf(cove.Unsupported, "compressed messages are not understood").Remedy("send them as they are")
	}
	return nil
}

// timeLeft is the deadline that a call brought, or 0 for none. Some clients write
// it with a fraction.
func (c *call) timeLeft() (time.Duration, error) {
	text := c.r.Header.Get("Connect-Timeout-Ms")
	if text == "" {
		return 0, nil
	}
	ms, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(ms) || ms < 0 {
		return 0, cove.InvalidField("Connect-Timeout-Ms", "%.40q is not a time; use a number of milliseconds", text)
	}
	if ms >= float64(maxTime/time.Millisecond) {
		return maxTime, nil
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// maxTime is the longest deadline that means anything.
const maxTime = 366 * 24 * time.Hour

// bounded is the context of the call with its deadline.
func (c *call) bounded() (context.Context, context.CancelFunc, error) {
	return c.boundedBy(c.r.Context())
}

func (c *call) boundedBy(ctx context.Context) (context.Context, context.CancelFunc, error) {
	d, err := c.timeLeft()
	if err != nil || d == 0 {
		return ctx, func() {}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d, errPassed)
	return ctx, cancel, nil
}

// because is err, or why the context ended where that is what err is about: the
// call's deadline, or a caller who must not go on.
func because(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause, ok := errors.AsType[*cove.Error](context.Cause(ctx)); ok {
		return cause
	}
	return err
}

func (c *call) control() *http.ResponseController { return http.NewResponseController(c.w) }
