package e2bapi

import (
	"context"
	"errors"
	"io"

	"github.com/cove-sandbox/cove"
)

// sendInput writes to a program.
func (c *call) sendInput(ctx context.Context, in inputRequest) (empty, error) {
	return empty{}, c.input(ctx, in.Process, in.Input.bytes(), false)
}

// closeStdin ends the input of a program.
func (c *call) closeStdin(ctx context.Context, in connectRequest) (empty, error) {
	return empty{}, c.input(ctx, in.Process, nil, true)
}

func (c *call) input(ctx context.Context, to selector, data []byte, eof bool) error {
	pid, err := c.pid(ctx, to)
	if err != nil {
		return err
	}
	return c.processes().Input(ctx, pid, data, eof)
}

// streamInput writes to a program as its input comes. The end of the stream is
// not the end of the input: that is CloseStdin's.
func (c *call) streamInput(ctx context.Context, next func() (streamInput, error)) error {
	m, err := next()
	switch {
	case errors.Is(err, io.EOF) || err == nil && m.Start == nil:
		return cove.Errorf(cove.Invalid, "a stream of input begins with the process that it is for")
	case err != nil:
		return err
	}
	pid, err := c.pid(ctx, m.Start.Process)
	if err != nil {
		return err
	}
	if err := c.processes().Input(ctx, pid, nil, false); err != nil { // whether it takes input at all
		return err
	}
	for {
		m, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Start != nil:
			return cove.Errorf(cove.Invalid, "a stream of input is for one process")
		case m.Data == nil: // a sign of life
			continue
		}
		if err := c.processes().Input(ctx, pid, m.Data.Input.bytes(), false); err != nil {
			return err
		}
	}
}
