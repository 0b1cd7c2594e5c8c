package local

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/keeper"
)

// attachPatience bounds the wait for the agent of an earlier process: it has to
// end the programs that nobody keeps.
const attachPatience = 20 * time.Second

// resumable is a sandbox whose programs can outlive this process.
type resumable struct {
	cove.Sandbox

	s *sandbox
}

var _ cove.Recorder = resumable{}

// Unwrap lets [cove.As] find the powers below.
func (r resumable) Unwrap() cove.Sandbox { return r.Sandbox }

// Kept implements [cove.Resumer].
func (r resumable) Kept(ctx context.Context) iter.Seq2[cove.Kept, error] { return r.s.agent.Kept(ctx) }

// Resume implements [cove.Resumer].
func (r resumable) Resume(ctx context.Context, keep string, cmd cove.Command) (cove.Process, error) {
	p, err := r.s.agent.Resume(ctx, keep, cmd)
	if err != nil || r.s.freezer == nil {
		return p, err
	}
	return killable{p, r.s, r.s.freezer}, nil
}

// Mark implements [cove.Recorder].
func (r resumable) Mark(ctx context.Context, keep string, m cove.Mark) error {
	return r.s.agent.Mark(ctx, keep, m)
}

// Forget implements [cove.Resumer].
func (r resumable) Forget(ctx context.Context, keep string) error { return r.s.agent.Forget(ctx, keep) }

// Attach implements [cove.Provider]: it finds the sandboxes of this process, and
// those that a keeper held for it.
func (p *Provider) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	h, err := p.open()
	if err != nil {
		return nil, err
	}
	var b *heldBox
	box, ours, err := p.books.TakeUp(ctx, id, func() bool {
		b = h.keeping.take(id)
		return b != nil
	})
	switch {
	case err != nil:
		return nil, err
	case box != nil:
		return box.face(), nil
	case ours:
		return p.attach(ctx, h, id, b)
	}
	return nil, gone(id, h.keeping.why())
}

// gone says that a sandbox is not there, and why if that is known.
func gone(id cove.ID, why string) error {
	if why != "" {
		return cove.Errorf(cove.NotFound, "sandbox %.60s is gone: %s", string(id), why)
	}
	return cove.Errorf(cove.NotFound, "sandbox %.60s is gone", string(id))
}

// attach takes up a sandbox of an earlier process, or ends what is left of it.
func (p *Provider) attach(ctx context.Context, h *hostSide, id cove.ID, b *heldBox) (cove.Sandbox, error) {
	s, err := p.takeUp(ctx, id, b)
	p.books.TookUp(id, s)
	if err == nil {
		p.guard(b.made.held.client)
		go s.watch()
		if s.soft != nil {
			go s.soft.watch()
		}
		return s.face(), nil
	}
	// The agent may have had half of a conversation; it cannot be asked again.
	if end := h.endHeld(context.WithoutCancel(ctx), id, b); end != nil {
		return nil, end
	}
	return nil, gone(id, cove.MessageOf(err))
}

// takeUp greets the agent of a sandbox for the second time.
func (p *Provider) takeUp(ctx context.Context, id cove.ID, b *heldBox) (*sandbox, error) {
	m := b.made
	s := &sandbox{p: p, id: id, died: make(chan struct{}), groups: m.group, shelf: m.shelf, disk: m.disk, made: m, kept: m, isolation: b.note.Isolation, note: b.note, env: b.note.Spec.Env}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attachPatience)
	defer cancel()
	if s.shelf != nil && !s.shelf.again(ctx, s.write, m.process, b.note.Shelf.Step) {
		s.shelf = nil // nobody knows what the workspace is made of; it stays as it is
	}
	if m.group != nil && m.host.support().Freeze == nil {
		s.freezer = newFreezer(m.group)
		// An agent that was paused cannot answer. Who wants it paused says so again.
		if err := m.group.Thaw(ctx); err != nil {
			return nil, err
		}
	}
	conn, err := m.connect(ctx, m.options(b.note.Spec, b.note.Env, b.note.Searched))
	if err != nil {
		return nil, err
	}
	s.conn = conn
	s.agent, _ = conn.(*guest.Conn)
	s.isolation.Policy = s.agent.Policy()
	if err := s.agent.Reconcile(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	s.rejoin(b.note.Way)
	if s.shelf != nil && b.note.Shelf.Step != "" {
		if err := s.put(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	if m.disk != nil && !m.disk.image {
		s.soft = &softBounds{s: s, dir: m.disk.inner(), bounds: placesOf(b.note.Spec).Workspace}
	}
	return s, nil
}

// part lets go of a sandbox at the end of the provider: it lives on where a
// keeper has it, and ends otherwise.
func (s *sandbox) part(ctx context.Context) error {
	s.mu.Lock()
	alive := s.made != nil && s.made.held != nil && !s.gone && !s.dead
	if alive {
		select {
		case <-s.made.held.client.Done():
			alive = false
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
	s.gone = true
	s.way.part()
	s.agent.Leave()
	s.made.part()
	s.made = nil
	return nil
}

// errKeeper is why sandboxes die that nobody holds any more.
var errKeeper = errors.New("the keeper of sandboxes has ended")

// guard ends the sandboxes that a keeper held when it is gone. They could not
// outlive us any more, and nobody reads what their programs write.
func (p *Provider) guard(c *keeper.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guarded == c || p.books.Open() != nil {
		return
	}
	p.guarded = c
	p.guards.Go(func() {
		<-c.Done()
		if p.books.Open() != nil {
			return
		}
		for _, box := range p.books.All() {
			box.lose(c)
		}
	})
}

// lose ends a sandbox whose keeper is gone.
func (s *sandbox) lose(c *keeper.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil || s.made.held == nil || s.made.held.client != c {
		return
	}
	s.agent.Lose(cove.Wrap(cove.Unavailable, errKeeper, "the keeper of sandboxes was ended, and the sandbox with it; open it anew"))
	s.die()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = s.end(ctx) // Destroy tries again
}
