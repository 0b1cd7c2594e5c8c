package gvisor

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// sandbox is a live one. It implements [cove.Sandbox], [cove.Dialer],
// [cove.Pauser], [cove.Resumer], [cove.Snapshotter], [cove.Forker] and
// [cove.Mortal].
type sandbox struct {
	p      *Provider
	id     cove.ID
	made   *made
	conn   *guest.Conn
	pauses *pauses
	way    *way // nil where nothing leads out

	starved atomic.Bool // it was lost for want of memory

	noting sync.Mutex // held by who writes it down
	note   *note      // guarded by noting

	mu    sync.Mutex
	gone  bool // the connection is closed
	freed bool
	dead  bool          // died is closed
	died  chan struct{} // closed when it was lost
	seen  cove.Sandbox  // what others see of it; nil until somebody does
}

var (
	_ cove.Sandbox     = (*sandbox)(nil)
	_ cove.Dialer      = (*sandbox)(nil)
	_ cove.Pauser      = (*sandbox)(nil)
	_ cove.Snapshotter = (*sandbox)(nil)
	_ cove.Forker      = (*sandbox)(nil)
	_ cove.Mortal      = (*sandbox)(nil)
)

func newSandbox(p *Provider, id cove.ID, m *made, n *note) *sandbox {
	return &sandbox{p: p, id: id, made: m, note: n, pauses: newPauses(), died: make(chan struct{})}
}

// face is what others see of a sandbox, always the same.
func (s *sandbox) face() cove.Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = s.reach(resumable{s, s})
	}
	return s.seen
}

// Died implements [cove.Mortal].
func (s *sandbox) Died() <-chan struct{} { return s.died }

// watch waits for the end of the link, and says so if nobody wanted it. Nobody
// but us ends it while the agent lives, and with the agent ends all.
func (s *sandbox) watch() {
	<-s.conn.Done()
	s.starved.Store(s.lacked())
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone && !s.dead {
		s.dead = true
		close(s.died)
	}
}

// lacked reports whether the host ended a part of it for want of memory.
func (s *sandbox) lacked() bool {
	if s.made.group == nil {
		return false
	}
	u, err := s.made.group.Usage()
	return err == nil && u.OOMKills > 0
}

// because says why a sandbox is lost, where that is known.
func (s *sandbox) because(err error) error {
	select {
	case <-s.conn.Done():
	default:
		return err
	}
	if cove.CodeOf(err) != cove.Unavailable || !s.starved.Load() && !s.lacked() {
		return err
	}
	return cove.Wrap(cove.Unavailable, err, "the memory of the sandbox ran out, faster than a single program could be ended for it").
		Remedy("open the sandbox anew, with more memory")
}

// ID implements [cove.Sandbox].
func (s *sandbox) ID() cove.ID { return s.id }

// Isolation implements [cove.Sandbox].
func (s *sandbox) Isolation() cove.Isolation { return s.noted().Isolation }

// Start implements [cove.Sandbox]. In a paused sandbox it waits.
func (s *sandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	from := s.computed()
	p, err := s.conn.Start(ctx, cmd)
	if err != nil {
		return nil, s.because(err)
	}
	return newKillable(p, s, from), nil
}

// computed is the processor time that the host's kernel counted for all of it; 0
// where it does not count.
func (s *sandbox) computed() time.Duration {
	if s.made.group == nil {
		return 0
	}
	u, err := s.made.group.Usage()
	if err != nil {
		return 0
	}
	return u.CPU
}

// Files implements [cove.Sandbox].
func (s *sandbox) Files() cove.Files { return s.conn.Files() }

// Dial implements [cove.Dialer].
func (s *sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	return s.conn.Dial(ctx, port)
}

// Usage implements [cove.Sandbox]: the host's kernel counts more truly than the
// agent, where it counts. While the sandbox is paused, what the agent said before
// still holds.
func (s *sandbox) Usage(ctx context.Context) (cove.Usage, error) {
	u, err := s.pauses.usage(ctx, s)
	if err != nil || s.made.group == nil {
		return u, err
	}
	counted, err := s.made.group.Usage()
	if err != nil {
		if s.isGone() {
			return u, s.goneError()
		}
		return u, cove.Wrap(cove.Unavailable, err, "the usage of sandbox %s cannot be read", s.id)
	}
	u.Memory, u.PeakMemory = cove.Bytes(counted.Memory), cove.Bytes(max(counted.PeakMemory, counted.Memory))
	if counted.CPU > 0 {
		u.CPU = counted.CPU
	}
	return u, nil
}

// isGone reports whether somebody destroyed it.
func (s *sandbox) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

func (s *sandbox) goneError() error { return cove.Errorf(cove.NotFound, "sandbox %s is gone", s.id) }

// Destroy implements [cove.Sandbox].
func (s *sandbox) Destroy(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone {
		_ = s.conn.Close()
		s.gone = true
	}
	if s.freed {
		return nil
	}
	shut := s.shut()
	if err := errors.Join(s.made.drop(ctx), s.p.host.notes.remove(s.id)); err != nil {
		return err
	}
	s.freed = true
	s.p.books.Drop(s.id, s)
	return shut
}

// part lets go of a sandbox at the end of the provider: it lives on, unless it
// died.
func (s *sandbox) part(ctx context.Context) error {
	s.mu.Lock()
	alive := !s.gone && !s.dead
	if alive {
		select {
		case <-s.conn.Done():
			alive = false
		default:
		}
	}
	if !alive {
		s.mu.Unlock()
		return s.Destroy(ctx)
	}
	defer s.mu.Unlock()
	s.gone, s.freed = true, true
	err := s.shut()
	s.conn.Leave()
	if s.made.group != nil {
		s.made.group.Close()
	}
	return err
}

// rewrite changes what is written down.
func (s *sandbox) rewrite(change func(*note)) error {
	s.noting.Lock()
	defer s.noting.Unlock()
	n := *s.note
	change(&n)
	if err := s.made.h.notes.write(s.id, &n); err != nil {
		return err
	}
	s.note = &n
	return nil
}

// noted is what is written down.
func (s *sandbox) noted() note {
	s.noting.Lock()
	defer s.noting.Unlock()
	return *s.note
}
