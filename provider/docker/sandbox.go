//go:build linux

package docker

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// sandbox is a live one.
type sandbox struct {
	p         *Provider
	id        cove.ID
	container string
	conn      atomic.Pointer[guest.Conn]
	pausing   *turn
	way       *way         // nil where nothing leads out
	peak      atomic.Int64 // of memory, where the engine does not tell
	starved   atomic.Int64 // how often the kernel killed for want of memory, so far

	reopening sync.Mutex  // held while a door is opened in the place of another
	tried     *guest.Conn // guarded by reopening; the last that broke
	reopened  time.Time   // guarded by reopening; when one was opened in its place

	mu      sync.Mutex
	note    note
	gone    bool // somebody destroyed it
	left    bool // it lives on without us
	dead    bool // died is closed
	removed bool // nothing of it is left
	died    chan struct{}
	seen    cove.Sandbox
}

var (
	_ cove.Sandbox   = (*sandbox)(nil)
	_ cove.Dialer    = (*sandbox)(nil)
	_ cove.Mortal    = (*sandbox)(nil)
	_ cove.Explainer = (*sandbox)(nil)
)

// options are what the host knows of a sandbox.
func (s *sandbox) options() guest.Options {
	return guest.Options{Env: environment(s.note.Spec.Env, s.note.Env), Memory: s.note.Memory, OutOfMemory: s.outOfMemory, Shared: s.shares()}
}

// shares reports whether the workspace is a part of the engine's disk that nobody
// bounds.
func (s *sandbox) shares() bool {
	return s.note.Spec.Workspace.Kind == cove.WorkspaceDisk && s.note.Isolation.Disk != cove.Hard
}

// face is what others see of it, always the same.
func (s *sandbox) face() cove.Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		var face cove.Sandbox = layered{pausable{s}, s}
		switch {
		case s.way != nil:
			face = reaching{face, s}
		case s.note.Spec.Network.Mode == cove.NetworkOpen:
			face = unwatched{face}
		}
		s.seen = resumable{face, pausable{s}}
	}
	return s.seen
}

// begin looks after a sandbox that somebody has.
func (s *sandbox) begin() { go s.watch() }

// watch waits for the end of the connection that is not followed by another, and
// says so if nobody wanted it.
func (s *sandbox) watch() {
	for more := true; more; {
		conn := s.conn.Load()
		<-conn.Done()
		more = s.reopen(conn)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone && !s.left && !s.dead {
		s.dead = true
		close(s.died)
	}
}

// rewrite changes what is written down.
func (s *sandbox) rewrite(change func(*note)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return s.goneError()
	}
	change(&s.note)
	return s.p.writeNote(s.id, s.note)
}

// Died implements [cove.Mortal].
func (s *sandbox) Died() <-chan struct{} { return s.died }

// Cause implements [cove.Explainer].
func (s *sandbox) Cause() error { return s.conn.Load().Cause() }

// ID implements [cove.Sandbox].
func (s *sandbox) ID() cove.ID { return s.id }

// Isolation implements [cove.Sandbox].
func (s *sandbox) Isolation() cove.Isolation { return s.note.Isolation }

// Start implements [cove.Sandbox].
func (s *sandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	return s.link().Start(ctx, cmd)
}

// Files implements [cove.Sandbox].
func (s *sandbox) Files() cove.Files { return s.link().Files() }

// Dial implements [cove.Dialer].
func (s *sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	return s.link().Dial(ctx, port)
}

func (s *sandbox) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// isOver reports whether we have no more to do with it.
func (s *sandbox) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone || s.left
}

func (s *sandbox) goneError() error { return cove.Errorf(cove.NotFound, "sandbox %s is gone", s.id) }

// leave lets go of a sandbox that lives on.
func (s *sandbox) leave() {
	s.mu.Lock()
	s.left = true
	s.mu.Unlock()
	s.way.shut()
	s.conn.Load().Leave()
}

// Destroy implements [cove.Sandbox].
func (s *sandbox) Destroy(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return nil
	}
	if !s.gone {
		s.gone = true
		s.way.shut()
		_ = s.conn.Load().Close()
	}
	if err := s.p.remove(ctx, s.container, s.note.Volume); err != nil {
		return err
	}
	if err := s.p.dropNote(s.id); err != nil {
		return err
	}
	s.removed = true
	s.p.books.Drop(s.id, s)
	return nil
}

// What bounds the question why a connection ended.
const (
	lookPatience = 3 * time.Second
	mostLooks    = 50
)

// loss finds out why a connection ended that nobody closed.
type loss struct{ at atomic.Pointer[tie] }

// tie is a sandbox and one of its connections.
type tie struct {
	box  *sandbox
	conn *guest.Conn
}

func (l *loss) of(s *sandbox, c *guest.Conn) { l.at.Store(&tie{s, c}) }

// ended is called when the engine has no more to send. If the sandbox goes on, it
// gets another door. Otherwise who waits for programs is told the reason, before the
// connection finds out that it is at its end.
func (l *loss) ended() {
	t := l.at.Load()
	if t == nil || t.box.isOver() {
		return
	}
	err := t.box.why(0)
	if err == nil && !t.box.reopen(t.conn) {
		err = t.box.why(mostLooks)
	}
	if err != nil {
		t.conn.Lose(err)
	}
}

// why says what became of a sandbox whose connection ended; nil if the engine sees
// nothing wrong, and was asked so many times more.
func (s *sandbox) why(more int) error {
	e, err := s.p.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	found, err := e.ContainerInspect(ctx, s.container, client.ContainerInspectOptions{})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	// An engine learns of the end of a container after its streams have ended.
	for tries := 0; err == nil && found.Container.State != nil && found.Container.State.Running && tries < more; tries++ {
		<-tick.C
		found, err = e.ContainerInspect(ctx, s.container, client.ContainerInspectOptions{})
	}
	switch {
	case isGone(err):
		return cove.Wrap(cove.NotFound, err, "sandbox %s was removed by somebody else", s.id).Reason(cove.ReasonNodeLost).Remedy("open a new one")
	case err != nil:
		s.p.doubt(e.fault(context.Background(), err, "look"))
		return e.fault(context.Background(), err, "say what became of the sandbox")
	case found.Container.State == nil || !found.Container.State.Running:
		return cove.Errorf(cove.NotFound, "sandbox %s was ended by somebody else, or by the engine", s.id).Reason(cove.ReasonNodeLost).Remedy("open a new one")
	}
	return nil
}

// greetAgent opens a door to the agent of a container.
func (p *Provider) greetAgent(ctx context.Context, e *engine, m *made, opts guest.Options) (*guest.Conn, error) {
	t, err := e.enter(ctx, m.container, m.lost.ended)
	if err != nil {
		return nil, err
	}
	return guest.Connect(ctx, t, opts)
}
