//go:build linux

package e2b

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// sandbox is a machine with an agent in it.
type sandbox struct {
	p     *Provider
	id    cove.ID
	known bool // it has a machine already, which is taken up

	entering chan struct{} // holds one token; taken by who enters the machine

	mu    sync.Mutex
	rec   record        // guarded by mu, as all below
	m     *machine      // nil until it is made
	conn  *guest.Conn   // nil while nobody is inside
	lost  bool          // a request to make it went wrong: it may be there
	gone  bool          // destroyed
	left  bool          // the provider is closed
	died  chan struct{} // closed when the machine ended by itself
	dead  bool          // died is closed
	ended sync.WaitGroup
}

var (
	_ cove.Sandbox = (*sandbox)(nil)
	_ cove.Dialer  = (*sandbox)(nil)
	_ cove.Mortal  = (*sandbox)(nil)
	_ cove.Charger = (*sandbox)(nil)
)

func newSandbox(p *Provider, id cove.ID) *sandbox {
	s := &sandbox{p: p, id: id, entering: make(chan struct{}, 1), died: make(chan struct{})}
	s.entering <- struct{}{}
	return s
}

// found says which machine it is.
func (s *sandbox) found(r record, m *machine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec, s.m = r, m
}

func (s *sandbox) maybe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = true
}

// enter gets an agent to work in the machine. In a fresh one there is none yet.
func (s *sandbox) enter(ctx context.Context, fresh bool) error {
	i, err := s.p.image()
	if err != nil {
		return err
	}
	s.mu.Lock()
	m, opts := s.m, s.p.options(s.rec.Env)
	s.mu.Unlock()
	if !fresh {
		if err := m.clear(ctx); err != nil {
			return err
		}
	}
	conn, err := m.board(ctx, i, opts)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.left {
		conn.Leave()
		return notFound(s.id)
	}
	s.conn, s.rec.Isolation.Policy = conn, conn.Policy()
	s.ended.Go(func() { s.mourn(conn) })
	return nil
}

func notFound(id cove.ID) error {
	return cove.Errorf(cove.NotFound, "sandbox %s is gone", id)
}

// mourn waits for the end of a connection, and finds out whether the machine is
// gone with it.
func (s *sandbox) mourn(conn *guest.Conn) {
	<-conn.Done()
	s.mu.Lock()
	if s.conn == conn {
		s.conn = nil
	}
	m, over := s.m, s.gone || s.left
	s.mu.Unlock()
	if over {
		return
	}
	ctx, cancel := context.WithTimeout(s.p.life, cleanTime)
	defer cancel()
	if alive, err := m.alive(ctx); err == nil && !alive {
		s.die()
	}
}

// die says that the machine ended by itself.
func (s *sandbox) die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone && !s.left && !s.dead {
		s.dead = true
		close(s.died)
	}
}

// ready sees to it that somebody is inside.
func (s *sandbox) ready(ctx context.Context) error {
	_, err := s.inside(ctx)
	return err
}

// inside returns the connection to the agent. Where the last one broke and the
// machine is still there, it enters anew: programs are gone then, and files are not.
func (s *sandbox) inside(ctx context.Context) (*guest.Conn, error) {
	if conn, err := s.now(); conn != nil || err != nil {
		return conn, err
	}
	select {
	case <-s.entering:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.entering <- struct{}{} }()
	if conn, err := s.now(); conn != nil || err != nil {
		return conn, err
	}
	s.p.caller.close() // what broke the last connection may have broken those that wait to be used
	if err := s.enter(ctx, false); err != nil {
		if cove.ReasonOf(err) == cove.ReasonNodeLost {
			s.die()
		}
		return nil, err
	}
	return s.now()
}

// now returns the connection that there is; none and no error means that the last
// one broke.
func (s *sandbox) now() (*guest.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone:
		return nil, notFound(s.id)
	case s.left:
		return nil, errClosed()
	case s.dead:
		return nil, cove.Errorf(cove.NotFound, "sandbox %s is gone: its machine at E2B ended", s.id).Reason(cove.ReasonNodeLost)
	case s.m == nil:
		return nil, cove.Errorf(cove.Conflict, "sandbox %s is still being made", s.id)
	}
	if s.conn != nil {
		select {
		case <-s.conn.Done():
			s.conn = nil
		default:
		}
	}
	return s.conn, nil
}

// renew gives the machine its time anew.
func (s *sandbox) renew() {
	s.mu.Lock()
	m, over := s.m, s.gone || s.left || s.dead
	s.mu.Unlock()
	if m == nil || over {
		return
	}
	ctx, cancel := context.WithTimeout(s.p.life, min(answerTime, s.p.cfg.Timeout/renewals))
	defer cancel()
	if err := s.p.api.renew(ctx, m.id, s.p.cfg.Timeout); cove.CodeOf(err) == cove.NotFound {
		s.die()
	}
}

// leave lets go of the machine, which lives on.
func (s *sandbox) leave() {
	s.mu.Lock()
	s.left = true
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		conn.Leave()
	}
	s.ended.Wait()
}

// ID implements [cove.Sandbox].
func (s *sandbox) ID() cove.ID { return s.id }

// Isolation implements [cove.Sandbox].
func (s *sandbox) Isolation() cove.Isolation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rec.Isolation
}

// Died implements [cove.Mortal].
func (s *sandbox) Died() <-chan struct{} { return s.died }

// Cost implements [cove.Charger]: a machine is paid for by the second, whatever it
// does.
func (s *sandbox) Cost(d time.Duration) *cove.Cost {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.p.cfg
	if c.CPUHour == 0 && c.MemoryHour == 0 || s.rec.CPUs == 0 {
		return nil
	}
	prices := cove.Prices{Currency: "USD", CPUHour: c.CPUHour, MemoryHour: c.MemoryHour}
	return prices.Of(cove.Consumption{CPU: time.Duration(float64(d) * s.rec.CPUs), MemoryTime: cove.MemoryTimeOf(s.rec.Memory, d)})
}

// Start implements [cove.Sandbox].
func (s *sandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	conn, err := s.inside(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Start(ctx, cmd)
}

// Files implements [cove.Sandbox].
func (s *sandbox) Files() cove.Files { return files{s} }

// Dial implements [cove.Dialer].
func (s *sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	conn, err := s.inside(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Dial(ctx, port)
}

// Usage implements [cove.Sandbox].
func (s *sandbox) Usage(ctx context.Context) (cove.Usage, error) {
	conn, err := s.inside(ctx)
	if err != nil {
		return cove.Usage{}, err
	}
	return conn.Usage(ctx)
}

// Destroy implements [cove.Sandbox].
func (s *sandbox) Destroy(ctx context.Context) error {
	s.mu.Lock()
	left, known := s.left, s.m != nil || s.lost
	m, conn := s.m, s.conn
	if !left {
		s.gone = true
	}
	s.mu.Unlock()
	if left {
		return errClosed()
	}
	if conn != nil {
		_ = conn.Close() // so that its programs are killed, not lost
	}
	s.ended.Wait()
	var err error
	switch {
	case m != nil:
		err = s.p.api.kill(ctx, m.id)
		if err == nil {
			err = s.p.ledger.drop(s.id)
		}
	case known:
		err = s.p.sweep(ctx, s.id)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.m, s.lost = nil, false
	s.mu.Unlock()
	s.p.release(s)
	return nil
}
