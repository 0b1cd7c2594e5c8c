package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/wire"
)

// withInput runs a program whose standard input follows the request on the same
// connection, while its output goes the other way. W is the form of the request
// and R the platform's own; both have that of a program in them.
func withInput[W, R any](
	c *call, form func(W) wire.ExecRequest, back func(W) (R, error), program func(*R) *cove.ExecRequest,
	run func(context.Context, *events, R) error,
) error {
	_ = c.control.EnableFullDuplex()
	body := &upload{c: c, limit: c.api.BodyTime, whole: true}
	stdin := bufio.NewReaderSize(body, 32<<10)
	w, err := requestLine[W](c, stdin)
	if err != nil {
		return err
	}
	if x := form(w); x.Background || x.Stdin != nil || len(x.StdinBase64) > 0 {
		return cove.InvalidField("stdin", "follows the request here, which goes with neither background nor stdin")
	}
	req, err := back(w)
	if err != nil {
		return err
	}
	program(&req).IdempotencyKey = c.idempotencyKey() // for the platform to refuse
	// A person may be typing: from here on the input takes its time.
	_ = c.control.SetReadDeadline(time.Time{})
	c.w.Header().Set("Connection", "close")
	end := func() {}
	err = c.stream(func(ctx context.Context, e *events) error {
		program(&req).Stdin, end = c.feed(stdin, e.cancel)
		return run(ctx, e, req)
	})
	if err != nil {
		c.respond(err)
	}
	_ = c.control.Flush()
	end()
	return nil
}

// requestLine reads the request in front of the input.
func requestLine[W any](c *call, r *bufio.Reader) (none W, err error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if over := c.body.Take(c.r.Context(), len(part)); over != nil {
			return none, over
		}
		line = append(line, part...)
		switch {
		case int64(len(line)) > c.limit:
			return none, intake.TooLarge(c.limit)
		case err == nil || errors.Is(err, io.EOF):
			return wire.Decode[W](line)
		case !errors.Is(err, bufio.ErrBufferFull):
			return none, err
		}
	}
}

// feed hands the input on until the program has ended, and then throws the
// rest away for a while, so that the client sees the answer and not a broken
// connection. Input that breaks off ends the program.
func (c *call) feed(stdin io.Reader, cancel context.CancelCauseFunc) (input io.Reader, end func()) {
	inside, pipe := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := io.Copy(pipe, stdin)
		if errors.Is(err, io.ErrClosedPipe) {
			_, _ = io.Copy(io.Discard, stdin)
			return
		}
		if err != nil {
			cancel(cove.Wrap(cove.Canceled, err, "the client went away before its input was whole"))
		}
		_ = pipe.CloseWithError(err)
	}()
	return inside, func() {
		_ = inside.Close()
		_ = c.control.SetReadDeadline(time.Now().Add(intake.Linger))
		<-done
	}
}
