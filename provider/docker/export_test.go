//go:build linux

package docker

import (
	"bufio"
	"context"
	"io"
	"net"
)

// Fault is what becomes of an error of a client for an engine.
func Fault(host string, err error) error {
	return (&engine{host: host}).fault(context.Background(), err, "do it")
}

// Doorway reads what an engine sends through a connection.
func Doorway(conn net.Conn, ends func()) (io.ReadWriteCloser, func() string) {
	d := &doorway{conn: conn, r: bufio.NewReader(conn), ends: ends}
	return d, d.complaints
}

// Hangup drops the connections to the engine that nobody uses, so that the next call dials.
func (p *Provider) Hangup() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine.close()
}
