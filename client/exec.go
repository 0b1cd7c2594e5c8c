package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// maxInline is how much input goes along in the request itself.
const maxInline = 1 << 20

// inline takes the input out of a reader that has all of it already. Others
// may block for ever and are streamed.
func inline(r io.Reader) (data []byte, ok bool) {
	if r == nil {
		return nil, true
	}
	whole, ok := r.(interface{ Len() int })
	switch r.(type) {
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
	default:
		return nil, false
	}
	if !ok || whole.Len() > maxInline {
		return nil, false
	}
	data, err := io.ReadAll(r)
	return data, err == nil
}

// Exec implements [cove.Processes]. Input that is not in memory is streamed;
// its reader may still be read from when Exec returns, as with os/exec.
func (p processes) Exec(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error) {
	if err := oneCommand(req); err != nil {
		return nil, err
	}
	stdin, ok := inline(req.Stdin)
	w := wire.ExecRequestOf(req, stdin)
	a := ask{method: http.MethodPost, path: of(p.id, "/execute"), body: w, header: once(req.IdempotencyKey)}
	if !ok {
		return p.execWithInput(ctx, a, w, req)
	}
	if req.OnOutput == nil {
		return p.execution(ctx, a)
	}
	return p.execStream(ctx, a, req.OnOutput)
}

// oneCommand refuses what has no form on the wire.
func oneCommand(req cove.ExecRequest) error {
	if req.Line != "" && len(req.Argv) > 0 {
		return req.Validate()
	}
	return nil
}

// execStream runs a program and hands its output on as it comes.
func (p processes) execStream(ctx context.Context, a ask, out func(cove.Chunk)) (*cove.Execution, error) {
	var x *cove.Execution
	for f, err := range p.c.follow(ctx, a, wire.OnExit) {
		if err != nil {
			return nil, err
		}
		if err := p.c.chunk(f, out); err != nil {
			return nil, err
		}
		if f.name == wire.OnExit {
			w, err := parse[wire.Execution](p.c, f)
			if err != nil {
				return nil, err
			}
			x = w.Cove()
		}
	}
	return x, nil
}

// chunk hands the output in an event on; other events are left alone.
func (c *Client) chunk(f frame, out func(cove.Chunk)) error {
	if f.name != wire.OnStdout && f.name != wire.OnStderr || out == nil {
		return nil
	}
	w, err := parse[wire.Chunk](c, f)
	if err != nil {
		return err
	}
	out(w.Cove(cove.Stream(f.name)))
	return nil
}

// execWithInput runs a program whose input follows the request on the same
// connection.
func (p processes) execWithInput(ctx context.Context, a ask, w wire.ExecRequest, req cove.ExecRequest) (*cove.Execution, error) {
	body, err := following(ctx, w, req.Stdin)
	if err != nil {
		return nil, err
	}
	a.body, a.stream = nil, body
	a.header["Content-Type"] = wire.ExecStream
	x, err := p.execStream(ctx, a, req.OnOutput)
	return x, body.blame(ctx, err)
}

// following is a request on one line with the input after it.
func following(ctx context.Context, w any, stdin io.Reader) (*upload, error) {
	head, err := wire.Encode(w)
	if err != nil {
		return nil, err
	}
	return newUpload(ctx, func(w io.Writer) error {
		if _, err := w.Write(append(head, '\n')); err != nil {
			return err
		}
		_, err := io.Copy(w, stdin)
		return err
	}), nil
}

// Start implements [cove.Processes]. Input that is not in memory follows in
// the background, as Input calls of this client, and OnOutput follows the
// program; both end with Close.
func (p processes) Start(ctx context.Context, req cove.ExecRequest) (*cove.ProcessInfo, error) {
	if err := oneCommand(req); err != nil {
		return nil, err
	}
	stdin, ok := inline(req.Stdin)
	w := wire.ExecRequestOf(req, stdin)
	w.KeepStdin = w.KeepStdin || !ok
	if !ok && req.IdempotencyKey != "" {
		return nil, cove.InvalidField("Idempotency-Key", "goes with input that is whole; send the input afterwards, with KeepStdin")
	}
	answer, err := get[wire.Process](ctx, p.c, ask{
		method: http.MethodPost, path: of(p.id, "/processes"), body: w, header: once(req.IdempotencyKey),
	})
	if err != nil {
		return nil, err
	}
	info := answer.Cove()
	if !ok && info.Running {
		p.c.pump(ctx, func(ctx context.Context) { p.pour(ctx, info.PID, req.Stdin, !req.KeepStdin) })
	}
	if req.OnOutput != nil {
		p.c.pump(ctx, func(ctx context.Context) {
			for chunk, err := range p.Connect(ctx, info.PID, 0) {
				if err != nil {
					return
				}
				req.OnOutput(chunk)
			}
		})
	}
	return &info, nil
}

// pour writes what r holds to a program until either ends.
func (p processes) pour(ctx context.Context, pid cove.PID, r io.Reader, eof bool) {
	type piece struct {
		data []byte
		err  error
	}
	pieces := make(chan piece)
	// The reader may block for ever; nobody but it is left behind then.
	go func() {
		for {
			data := make([]byte, 32<<10)
			n, err := r.Read(data)
			select {
			case pieces <- piece{data[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-pieces:
			if len(next.data) > 0 && p.Input(ctx, pid, next.data, false) != nil {
				return
			}
			if next.err != nil {
				if eof && errors.Is(next.err, io.EOF) {
					_ = p.Input(ctx, pid, nil, true) // it may have ended
				}
				return
			}
		}
	}
}
