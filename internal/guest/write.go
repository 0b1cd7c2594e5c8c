//go:build linux

package guest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Write implements [cove.Files].
func (f files) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	if mode == 0 {
		mode = 0o644
	}
	return f.send(ctx, protocol.KindWrite, name, protocol.File{Mode: uint32(mode.Perm())}, func(w *protocol.RecordWriter) error {
		return w.Copy(r, 1<<63-1)
	})
}

// send asks for something that takes a stream, and writes the stream. The
// agent's own error wins over that of a stream that it stopped reading; the
// error of the caller's reader wins over what the agent makes of it.
func (f files) send(ctx context.Context, kind protocol.Kind, name string, req protocol.File, write func(*protocol.RecordWriter) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	pipe, stream, err := protocol.Pipe(protocol.Readable)
	if err != nil {
		return pipeFault(err)
	}
	defer func() { _ = pipe.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	wrote := make(chan error, 1)
	go func() {
		w := protocol.NewRecordWriter(pipe)
		err := write(w)
		if err == nil {
			err = broken(w.End())
		}
		// Before the pipe is closed, which is what makes the agent answer.
		wrote <- err
		_ = pipe.Close()
	}()
	_, err = f.ask(ctx, kind, name, req, stream)
	if err == nil {
		return <-wrote // the agent has read the last record
	}
	_ = pipe.Close()
	select {
	case werr := <-wrote:
		var w *protocol.WriteError
		if werr != nil && !errors.As(werr, &w) && !errors.Is(werr, os.ErrClosed) && ctx.Err() == nil {
			return werr
		}
	default: // the caller's reader blocks; nobody waits for it
	}
	return err
}

// broken marks an error of the stream.
func broken(err error) error {
	if err == nil {
		return nil
	}
	return &protocol.WriteError{Err: err}
}
