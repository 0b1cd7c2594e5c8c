package cluster

import (
	"context"
	"net"
	"sync"
)

// lines are the connections to one node.
type lines struct {
	mu   sync.Mutex
	open map[*line]struct{} // guarded by mu
}

// line is one of them.
type line struct {
	net.Conn

	of *lines
}

// connect makes one more.
func (w *lines) connect(ctx context.Context, d *net.Dialer, address string) (net.Conn, error) {
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	one := &line{c, w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[one] = struct{}{}
	return one, nil
}

// Close implements [net.Conn].
func (one *line) Close() error {
	one.of.mu.Lock()
	delete(one.of.open, one)
	one.of.mu.Unlock()
	return one.Conn.Close()
}

// sever ends all of them, with whatever waits for an answer.
func (w *lines) sever() {
	w.mu.Lock()
	all := w.open
	w.open = map[*line]struct{}{}
	w.mu.Unlock()
	for one := range all {
		_ = one.Conn.Close() // whoever uses it is told
	}
}
