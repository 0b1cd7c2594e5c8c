package httpapi

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

func portRoutes() []route {
	return []route{
		{
			method: http.MethodGet, pattern: "/api/sandboxes/{id}/ports/{port}/connect", summary: "Connect to a port inside: with Upgrade: tcp the connection carries its bytes",
			deed: deed{status: http.StatusSwitchingProtocols, do: (*call).dial},
		},
		{
			method: http.MethodGet, pattern: "/api/sandboxes/{id}/terminal", deed: deed{status: http.StatusSwitchingProtocols, do: (*call).terminal},
			summary: "Open a terminal over WebSocket: binary messages are its bytes, text messages are JSON such as {\"type\":\"resize\",\"cols\":80,\"rows\":24}; the last one has type exit",
			query: []param{
				{name: "cols", kind: number, from: 1, to: 65535, doc: "left out, 80"},
				{name: "rows", kind: number, from: 1, to: 65535, doc: "left out, 24"},
				{name: "command", kind: word, doc: "what runs in it; left out, a shell"},
			},
		},
	}
}

// upgrades reports whether the client asks for protocol on this connection.
func (c *call) upgrades(protocol string) bool {
	connection := strings.ToLower(strings.Join(c.r.Header.Values("Connection"), ","))
	return strings.Contains(connection, "upgrade") && strings.EqualFold(c.r.Header.Get("Upgrade"), protocol)
}

func (c *call) dial() error {
	port, err := strconv.Atoi(c.r.PathValue("port"))
	if err != nil || port < 1 || port > 65535 {
		return cove.InvalidField("port", "%.40q is not a port; use 1 to 65535", c.r.PathValue("port"))
	}
	if !c.upgrades("tcp") {
		return cove.Errorf(cove.Invalid, "this route is a connection: send Connection: Upgrade and Upgrade: tcp")
	}
	inside, err := c.platform.Ports(c.session()).Dial(c.r.Context(), port)
	if err != nil {
		return err
	}
	defer inside.Close() //nolint:errcheck // both ways are over
	client, buffered, err := c.control.Hijack()
	if err != nil {
		return cove.Wrap(cove.Unsupported, err, "this server cannot hand a connection over")
	}
	defer client.Close() //nolint:errcheck // both ways are over
	c.w.status = http.StatusSwitchingProtocols
	_, err = client.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nX-Request-Id: " + c.id + "\r\n\r\n"))
	if err != nil {
		return cove.Wrap(cove.Canceled, err, "the client went away")
	}
	// A server that shuts down ends its context, not what was handed over.
	stop := context.AfterFunc(c.r.Context(), func() { _, _ = inside.Close(), client.Close() })
	defer stop()
	var ways sync.WaitGroup
	ways.Go(func() { c.w.bytes = oneWay(client, inside) })
	oneWay(inside, io.MultiReader(io.LimitReader(buffered, int64(buffered.Reader.Buffered())), client))
	ways.Wait()
	return nil
}

// oneWay copies until src ends and says so to dst; where dst cannot be half
// closed, it is closed.
func oneWay(dst net.Conn, src io.Reader) int64 {
	n, err := io.Copy(dst, src)
	half, ok := dst.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = dst.Close()
	}
	return n
}
