package mcpserver

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
)

// Stdio serves one client over a pair of streams, a message a line, until in ends
// or ctx does. All that is asked is asked of p. It reads in to its end: whoever
// ends ctx closes in, too, or lets the process end.
func Stdio(ctx context.Context, cfg Config, p cove.Platform, in io.Reader, out io.Writer) error {
	f := newFace(cfg, &caller{platform: p})
	err := f.server.Run(ctx, &mcp.IOTransport{Reader: readCloser(in), Writer: keepOpen{out}, MaxLineLength: maxMessage})
	f.wait.Wait()
	if err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil //nolint:nilerr // its client went, or was made to
	}
	return cove.Wrap(cove.Invalid, err, "the client sent what is no message of the protocol").Remedy("a client sends one JSON-RPC message a line, of up to %s", cove.Bytes(maxMessage))
}

// readCloser closes what can be closed, so that nobody waits for more of it.
func readCloser(in io.Reader) io.ReadCloser {
	if c, ok := in.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(in)
}

type keepOpen struct{ io.Writer }

// Close leaves the stream to its owner.
func (keepOpen) Close() error { return nil }
