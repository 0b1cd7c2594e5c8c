//go:build linux

package docker

import (
	"context"
	"net"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/internal/guest"
)

const (
	// reopenPatience bounds a new door in the place of one that broke.
	reopenPatience = 10 * time.Second
	// reopenPause is how long a door must have held to be worth another.
	reopenPause = time.Second
)

// reopen opens a door in the place of one that broke while the sandbox goes on, such
// as one that the kernel killed for want of memory, and reports whether the sandbox
// has one. It tries once for each that broke.
func (s *sandbox) reopen(broken *guest.Conn) bool {
	s.reopening.Lock()
	defer s.reopening.Unlock()
	switch {
	case s.conn.Load() != broken:
		return true
	case s.tried == broken || s.isOver() || time.Since(s.reopened) < reopenPause:
		return false
	}
	s.tried = broken
	ctx, cancel := context.WithTimeout(context.Background(), reopenPatience)
	defer cancel()
	m, err := s.nextDoor(ctx)
	if err != nil {
		return false
	}
	broken.Lose(cove.Errorf(cove.Unavailable, "the connection to sandbox %s broke: the program is gone, unless it is kept; the files are there", s.id).
		Reason(cove.ReasonProviderDown).Remedy("run it again"))
	if !s.take(ctx, m) {
		m.conn.Leave()
		return false
	}
	s.reopened = time.Now()
	return true
}

// link is the connection. If it broke, who comes waits for whether there is another.
// It must not be called by who holds up the opening of one: with the turn, or the
// way out.
func (s *sandbox) link() *guest.Conn {
	conn := s.conn.Load()
	select {
	case <-conn.Done():
		s.reopen(conn)
		return s.conn.Load()
	default:
		return conn
	}
}

// nextDoor greets the agent again. A paused sandbox runs for as long as that takes.
func (s *sandbox) nextDoor(ctx context.Context) (*made, error) {
	e, err := s.p.open()
	if err != nil {
		return nil, err
	}
	if err := s.pausing.take(ctx); err != nil {
		return nil, err
	}
	defer s.pausing.give()
	if s.pausing.paused {
		if err := e.thaw(ctx, s.container); err != nil {
			return nil, err
		}
	}
	m := &made{container: s.container, lost: &loss{}}
	m.conn, err = s.p.greetAgent(ctx, e, m, s.options())
	if s.pausing.paused {
		if again := e.freeze(context.WithoutCancel(ctx), s.container); again != nil && err == nil {
			m.conn.Leave()
			return nil, again
		}
	}
	return m, err
}

// take makes a new connection the sandbox's, with its way out.
func (s *sandbox) take(ctx context.Context, m *made) bool {
	if s.way == nil {
		return s.adopt(m)
	}
	taken := false
	err := s.way.Hold(func() error {
		if err := s.way.reroute(ctx, m.conn); err != nil {
			return err
		}
		taken = s.adopt(m)
		return nil
	})
	return taken && err == nil
}

// adopt is take without the way out.
func (s *sandbox) adopt(m *made) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.left {
		return false
	}
	m.lost.of(s, m.conn)
	s.conn.Store(m.conn)
	return true
}

// reroute has the gateway serve who comes through another connection, at the same
// ports and with the same rules.
func (w *way) reroute(ctx context.Context, c *guest.Conn) error {
	ways, err := c.Listen(ctx, true, w.Ports()...)
	if err != nil {
		return err
	}
	return w.gate.Listen(socketsOf(ways))
}

// socketsOf are the ends of a way out that a gateway serves.
func socketsOf(w *guest.Ways) egress.Sockets {
	return egress.Sockets{DNS: []net.PacketConn{w.Packets}, Stream: []net.Listener{w.Stream}, TCP: []net.Listener{w.TCP}, Range: w.Range}
}
