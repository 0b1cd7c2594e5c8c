//go:build linux

package docker

import (
	"bufio"
	"context"
	"io"
	"net"

	"github.com/moby/moby/api/types/system"
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

// Apart makes the control group for an engine, has a container run that is not in it if
// misplaced, and returns where containers are made and what is to be known of it.
func (p *Provider) Apart(local, podman, misplaced bool, info system.Info) (parent string, notes []string) {
	f := &facts{podman: podman}
	f.apart = f.canBound(&engine{local: local}, info)
	parent = p.parent(f)
	if misplaced {
		p.placed("0123456789ab")
		parent = p.parent(f)
	}
	return parent, p.apart(f)
}
