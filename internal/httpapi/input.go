package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// executeWithInput runs a program whose standard input follows the request on
// the same connection, while its output goes the other way.
func (c *call) executeWithInput() error {
	_ = c.control.EnableFullDuplex()
	body := &upload{c: c, limit: c.api.BodyTime, whole: true}
	stdin := bufio.NewReaderSize(body, 32<<10)
	req, err := c.requestLine(stdin)
	if err != nil {
		return err
	}
	// A person may be typing: from here on the input takes its time.
	_ = c.control.SetReadDeadline(time.Time{})
	c.w.Header().Set("Connection", "close")
	end := func() {}
	err = c.stream(func(ctx context.Context, e *events) error {
		req.Stdin, end = c.feed(stdin, e.cancel)
		return c.executeAsEvents(ctx, e, req)
	})
	if err != nil {
		c.respond(err)
	}
	_ = c.control.Flush()
	end()
	return nil
}

// requestLine reads the request in front of the input.
func (c *call) requestLine(r *bufio.Reader) (cove.ExecRequest, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err == nil || errors.Is(err, io.EOF) || int64(len(line)) > c.limit {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return cove.ExecRequest{}, err
		}
	}
	w, err := wire.Decode[wire.ExecRequest](bytes.NewReader(line), c.limit)
	if err != nil {
		return cove.ExecRequest{}, err
	}
	if w.Background || w.Stdin != nil || len(w.StdinBase64) > 0 {
		return cove.ExecRequest{}, cove.InvalidField("stdin", "follows the request here, which goes with neither background nor stdin")
	}
	return w.Cove()
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
		_ = c.control.SetReadDeadline(time.Now().Add(linger))
		<-done
	}
}
