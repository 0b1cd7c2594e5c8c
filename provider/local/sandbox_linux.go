package local

import (
	"context"
	"maps"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/template"
)

// sandbox is a live one. It implements [cove.Sandbox], [cove.Dialer] and
// [cove.Mortal].
type sandbox struct {
	p         *Provider
	id        cove.ID
	isolation cove.Isolation
	conn      inside
	agent     *guest.Conn       // the same, if it is an agent
	groups    *cgroup.Group     // nil where there are none
	freezer   *freezer          // nil where it cannot be paused
	shelf     *shelf            // nil where there are no layers
	disk      *disk             // the workspace, if it is on disk
	soft      *softBounds       // nil where the kernel bounds the workspace
	env       map[string]string // of the spec
	way       *way              // nil where nothing leads out

	mu   sync.Mutex
	made *made         // nil when it is gone
	gone bool          // the connection is closed
	dead bool          // died is closed
	died chan struct{} // closed when it was lost
	seen cove.Sandbox  // what others see of it; nil until somebody does

	kept   *made      // what the keeper has of it; nil if it has nothing
	noting sync.Mutex // held by who writes it down
	note   note       // guarded by noting; what is written down
}

var (
	_ cove.Sandbox   = (*sandbox)(nil)
	_ cove.Dialer    = (*sandbox)(nil)
	_ cove.Mortal    = (*sandbox)(nil)
	_ cove.Explainer = (*sandbox)(nil)
)

// environment is what every program of a sandbox has: what its spec says, over
// what its template says. More are directories to search beside the usual ones.
func environment(spec, made map[string]string, more []string) map[string]string {
	env := map[string]string{
		"HOME": cove.WorkspacePath, "LANG": "C.UTF-8", "LOGNAME": host, "USER": host, "SHELL": "/bin/bash",
		"PATH": template.Path,
	}
	maps.Copy(env, made)
	for _, dir := range more {
		env["PATH"] += ":" + dir
	}
	maps.Copy(env, spec)
	return env
}

// Died implements [cove.Mortal].
func (s *sandbox) Died() <-chan struct{} { return s.died }

// watch waits for the end of the agent, and says so if nobody wanted it.
func (s *sandbox) watch() {
	<-s.conn.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.die()
}

// die says that it was lost, if nobody wanted it. Called with mu held.
func (s *sandbox) die() {
	if !s.gone && !s.dead {
		s.dead = true
		close(s.died)
	}
}

// ID implements [cove.Sandbox].
func (s *sandbox) ID() cove.ID { return s.id }

// Isolation implements [cove.Sandbox].
func (s *sandbox) Isolation() cove.Isolation { return s.isolation }

// Start implements [cove.Sandbox].
func (s *sandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	s.shelf.regain(ctx)
	defer s.shelf.inside()()
	return s.conn.Start(ctx, cmd)
}

// Files implements [cove.Sandbox].
func (s *sandbox) Files() cove.Files {
	if s.shelf == nil {
		return s.conn.Files()
	}
	return gated{s.conn.Files(), s.shelf}
}

// Dial implements [cove.Dialer].
func (s *sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	return s.conn.Dial(ctx, port)
}

// Usage implements [cove.Sandbox]: the kernel counts more truly than the agent,
// where it counts.
func (s *sandbox) Usage(ctx context.Context) (cove.Usage, error) {
	u, err := s.told(ctx)
	if err != nil || s.groups == nil {
		return u, err
	}
	return s.counted(u)
}

// told is what the agent says, without what is ours of the workspace.
func (s *sandbox) told(ctx context.Context) (cove.Usage, error) {
	u, err := s.conn.Usage(ctx)
	if err != nil {
		return u, err
	}
	if s.disk != nil {
		s.disk.count(&u)
	}
	s.shelf.correct(&u)
	return u, nil
}

// counted puts what the kernel counts into what the agent said.
func (s *sandbox) counted(u cove.Usage) (cove.Usage, error) {
	counted, err := s.groups.Usage()
	if err != nil {
		return u, cove.Wrap(cove.Unavailable, err, "the usage of sandbox %s cannot be read", s.id)
	}
	u.Memory, u.PeakMemory = cove.Bytes(counted.Memory), cove.Bytes(counted.PeakMemory)
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

// kill ends the first process, and with it the sandbox. It is lost then.
func (s *sandbox) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made != nil && !s.gone && s.made.process >= 0 {
		_ = unix.PidfdSendSignal(s.made.process, unix.SIGKILL, nil, 0)
	}
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
	if err := s.end(ctx); err != nil {
		return err
	}
	s.p.books.Drop(s.id, s)
	return nil
}

// end frees what it held. Called with mu held.
func (s *sandbox) end(ctx context.Context) error {
	if s.made == nil {
		return nil
	}
	var shut error
	if s.way != nil {
		shut = s.way.gate.Close()
	}
	if err := s.made.end(ctx); err != nil {
		return err
	}
	s.made = nil
	return shut
}

// famine is [outOfMemory] of the sandbox, the same for all who ask.
func (m *made) famine() func() bool {
	if m.hungry == nil {
		m.hungry = outOfMemory(m.group, m.starved)
	}
	return m.hungry
}

// outOfMemory returns a question: did the kernel kill somebody for want of
// memory since it was asked before? Seen is how many it killed earlier.
func outOfMemory(g *cgroup.Group, seen int64) func() bool {
	if g == nil {
		return nil
	}
	var mu sync.Mutex
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		u, err := g.Usage()
		if err != nil || u.OOMKills <= seen {
			return false
		}
		seen = u.OOMKills
		return true
	}
}

// inside is the host's end of the connection to the first process of a sandbox.
type inside interface {
	Start(ctx context.Context, cmd cove.Command) (cove.Process, error)
	Files() cove.Files
	Dial(ctx context.Context, port int) (net.Conn, error)
	Usage(ctx context.Context) (cove.Usage, error)
	Adopt(opts guest.Options)
	Done() <-chan struct{}
	Close() error
	Cause() error
}

// connect greets the agent, or takes the link to what is there in its place.
func (m *made) connect(ctx context.Context, opts guest.Options) (inside, error) {
	if m.solo {
		link := m.link
		m.link = -1
		return guest.NewSolo(link, openFiles(), opts, m.stop, m.watches()), nil
	}
	t, err := guest.Descriptors(m.link)
	if err != nil {
		return nil, err
	}
	m.link = -1 // it is the connection's now
	conn, err := guest.Connect(ctx, t, opts)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// Cause implements [cove.Explainer].
func (s *sandbox) Cause() error { return s.conn.Cause() }
