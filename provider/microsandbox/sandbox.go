//go:build linux

package microsandbox

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// sandbox is a machine with our agent in it.
type sandbox struct {
	p       *Provider
	t       transport
	notes   *notes
	id      cove.ID
	machine string
	rec     note

	joining chan struct{} // holds one token; taken by who connects

	mu    sync.Mutex
	agent *guest.Conn // nil before the first; guarded by mu
	over  error       // why there will be no other; guarded by mu

	ending sync.Mutex // held by who destroys
	ended  bool       // guarded by ending

	killed atomic.Int64 // programs that the machine's kernel killed for memory, when last asked
	peak   atomic.Int64
}

var (
	_ cove.Sandbox = (*sandbox)(nil)
	_ cove.Dialer  = (*sandbox)(nil)
	_ cove.Resumer = (*sandbox)(nil)
)

func newSandbox(p *Provider, t transport, n *notes, id cove.ID, rec note) *sandbox {
	s := &sandbox{p: p, t: t, notes: n, id: id, machine: n.machine(id), rec: rec, joining: make(chan struct{}, 1)}
	s.joining <- struct{}{}
	s.killed.Store(-1)
	return s
}

// ID implements [cove.Sandbox].
func (s *sandbox) ID() cove.ID { return s.id }

// Isolation implements [cove.Sandbox].
func (s *sandbox) Isolation() cove.Isolation {
	i := s.p.capabilities(s.t, s.rec.Fence).For(s.rec.Spec.Workspace.Kind)
	if c, err := s.live(); c != nil && err == nil {
		i.Policy = c.Policy()
	}
	return i
}

// dir is where our things are inside.
func (s *sandbox) dir() string {
	if s.rec.Fence != nil {
		return guestDir
	}
	return rootDir
}

// live returns the connection there is, or nil.
func (s *sandbox) live() (*guest.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || s.agent == nil {
		return nil, s.over
	}
	select {
	case <-s.agent.Done():
		return nil, nil
	default:
		return s.agent, nil
	}
}

// conn returns the connection to the agent. Where it was lost, and the machine is
// still there, it makes another: the programs before have ended.
func (s *sandbox) conn(ctx context.Context) (*guest.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c, err := s.live(); c != nil || err != nil {
		return c, err
	}
	select {
	case <-s.joining:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.joining <- struct{}{} }()
	if c, err := s.live(); c != nil || err != nil {
		return c, err
	}
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil { // it was ended meanwhile
		_ = c.Close()
		return nil, s.over
	}
	s.agent = c
	return c, nil
}

func (s *sandbox) connect(ctx context.Context) (*guest.Conn, error) {
	link, err := s.t.connect(ctx, s.machine, s.dir())
	if err != nil {
		all, merr := s.t.machines(ctx)
		if merr == nil && !all[s.machine] {
			return nil, gone(s.machine)
		}
		return nil, err
	}
	if s.killed.Load() < 0 {
		s.killed.Store(s.countKilled(ctx))
	}
	door, err := guest.Door(ctx, link)
	if err != nil {
		if l, ok := link.(*cliLink); ok && ctx.Err() == nil {
			err = errors.Join(err, errors.New(printable(l.said.String()))) // closed by now
		}
		return nil, err
	}
	most := s.rec.Spec.Resources.PIDs
	if s.rec.Fence != nil { // it would count the mailbox too, which comes and goes
		most = 0
	}
	return guest.Connect(ctx, door, guest.Options{
		Env: environment(s.rec.Spec), Processes: most, OutOfMemory: s.outOfMemory,
		Memory: cmp.Or(s.rec.Spec.Resources.Memory, s.p.cfg.Memory),
	})
}

// shut ends the connection for good; programs are Killed.
func (s *sandbox) shut() {
	s.finish(cove.Errorf(cove.NotFound, "the sandbox is gone"), func(c *guest.Conn) { _ = c.Close() })
}

// leave ends the connection of this process.
func (s *sandbox) leave() {
	s.finish(cove.Errorf(cove.Unavailable, "provider %s is closed", name), func(c *guest.Conn) { c.Leave() })
}

func (s *sandbox) finish(why error, end func(*guest.Conn)) {
	s.mu.Lock()
	if s.over == nil {
		s.over = why
	}
	c := s.agent
	s.mu.Unlock()
	if c != nil {
		end(c)
	}
}

// Start implements [cove.Sandbox].
func (s *sandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	c, err := s.conn(ctx)
	if err != nil {
		return nil, err
	}
	return c.Start(ctx, cmd)
}

// Dial implements [cove.Dialer].
func (s *sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	c, err := s.conn(ctx)
	if err != nil {
		return nil, err
	}
	return c.Dial(ctx, port)
}

// Kept implements [cove.Resumer].
func (s *sandbox) Kept(ctx context.Context) iter.Seq2[cove.Kept, error] {
	return func(yield func(cove.Kept, error) bool) {
		c, err := s.conn(ctx)
		if err != nil {
			yield(cove.Kept{}, err)
			return
		}
		c.Kept(ctx)(yield)
	}
}

// Resume implements [cove.Resumer].
func (s *sandbox) Resume(ctx context.Context, keep string, cmd cove.Command) (cove.Process, error) {
	c, err := s.conn(ctx)
	if err != nil {
		return nil, err
	}
	return c.Resume(ctx, keep, cmd)
}

// Forget implements [cove.Resumer].
func (s *sandbox) Forget(ctx context.Context, keep string) error {
	c, err := s.conn(ctx)
	if err != nil {
		return err
	}
	return c.Forget(ctx, keep)
}

// Files implements [cove.Sandbox].
func (s *sandbox) Files() cove.Files { return files{s} }

// Usage implements [cove.Sandbox].
func (s *sandbox) Usage(ctx context.Context) (cove.Usage, error) {
	c, err := s.conn(ctx)
	if err != nil {
		return cove.Usage{}, err
	}
	u, err := c.Usage(ctx)
	if err != nil {
		return u, err
	}
	u.Memory = s.t.memory(ctx, s.machine)
	for {
		peak := s.peak.Load()
		u.PeakMemory = max(cove.Bytes(peak), u.Memory)
		if s.peak.CompareAndSwap(peak, int64(u.PeakMemory)) {
			return u, nil
		}
	}
}

// Destroy implements [cove.Sandbox].
func (s *sandbox) Destroy(ctx context.Context) error {
	s.ending.Lock()
	defer s.ending.Unlock()
	if s.ended {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.shut()
	if err := s.t.stop(ctx, s.machine); err != nil {
		return err
	}
	if err := s.notes.drop(s.id); err != nil {
		return err
	}
	s.ended = true
	s.p.mu.Lock()
	delete(s.p.boxes, s.id)
	s.p.mu.Unlock()
	return nil
}

// killTime bounds asking the machine what its kernel killed.
const killTime = 3 * time.Second

// outOfMemory reports whether the machine's kernel has killed somebody for want of
// memory since it was last asked.
func (s *sandbox) outOfMemory() bool {
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	now := s.countKilled(ctx)
	if now < 0 {
		return false
	}
	before := s.killed.Swap(now)
	return before >= 0 && now > before
}

// countKilled reads the count; -1 where nobody can tell.
func (s *sandbox) countKilled(ctx context.Context) int64 {
	const tries = 3
	for range tries {
		f, err := s.t.run(ctx, s.machine, "grep", "^oom_kill ", "/proc/vmstat")
		if err != nil {
			return -1
		}
		if n := killedIn(f.stdout); n >= 0 {
			return n
		}
	}
	return -1
}

// killedIn finds the count in what a machine printed.
func killedIn(text string) int64 {
	_, after, _ := strings.Cut("\n"+text, "\noom_kill ")
	number, _, _ := strings.Cut(after, "\n")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
