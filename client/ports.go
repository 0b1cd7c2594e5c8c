package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"

	"github.com/cove-sandbox/cove"
)

type ports struct {
	c  *Client
	id cove.ID
}

// Dial implements [cove.Ports]. ctx bounds the dialing alone.
func (p ports) Dial(ctx context.Context, port int) (net.Conn, error) {
	var raw net.Conn
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { raw = info.Conn }}
	resp, err := p.c.do(httptrace.WithClientTrace(ctx, trace), ask{
		method: http.MethodGet, path: path{sandboxes, string(p.id), "/ports/", strconv.Itoa(port), "/connect"},
		header: map[string]string{"Connection": "Upgrade", "Upgrade": "tcp"},
	})
	if err != nil {
		return nil, err
	}
	stream, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		defer resp.Body.Close() //nolint:errcheck // only read
		return nil, p.c.foreign(resp)
	}
	return &conn{Conn: raw, stream: stream}, nil
}

// conn is a connection that the transport has handed over. Bytes go through
// the stream, which may hold some already; the rest is the connection's own.
type conn struct {
	net.Conn

	stream io.ReadWriteCloser
}

func (c *conn) Read(p []byte) (int, error)  { return c.stream.Read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.stream.Write(p) }
func (c *conn) Close() error                { return c.stream.Close() }

// CloseWrite ends what is sent and leaves the other way open.
func (c *conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return cove.Errorf(cove.Unsupported, "this connection cannot be half closed")
	}
	return half.CloseWrite()
}
