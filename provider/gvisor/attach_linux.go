package gvisor

import (
	"context"
	"errors"
	"iter"
	"os"
	"time"

	"github.com/cove-sandbox/cove"
)

// attachPatience bounds the wait for the agent of an earlier process: it has to
// end the programs that nobody keeps.
const attachPatience = 20 * time.Second

// resumable is a sandbox whose programs can outlive this process. It is a layer
// of its own because [cove.Pauser] has a Resume, too.
type resumable struct {
	cove.Sandbox

	s *sandbox
}

var _ cove.Recorder = resumable{}

// Unwrap lets [cove.As] find the powers below.
func (r resumable) Unwrap() cove.Sandbox { return r.Sandbox }

// Kept implements [cove.Resumer].
func (r resumable) Kept(ctx context.Context) iter.Seq2[cove.Kept, error] { return r.s.conn.Kept(ctx) }

// Resume implements [cove.Resumer].
func (r resumable) Resume(ctx context.Context, keep string, cmd cove.Command) (cove.Process, error) {
	p, err := r.s.conn.Resume(ctx, keep, cmd)
	if err != nil {
		return nil, err
	}
	return newKillable(p, r.s, 0), nil
}

// Mark implements [cove.Recorder].
func (r resumable) Mark(ctx context.Context, keep string, m cove.Mark) error {
	return r.s.conn.Mark(ctx, keep, m)
}

// Forget implements [cove.Resumer].
func (r resumable) Forget(ctx context.Context, keep string) error { return r.s.conn.Forget(ctx, keep) }

// Attach implements [cove.Provider]: it finds the sandboxes of this process, and
// those that are written down and live.
func (p *Provider) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !id.Valid() {
		return nil, gone(id)
	}
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	h, err := p.open()
	if err != nil {
		return nil, err
	}
	box, ours, err := p.books.TakeUp(ctx, id, nil)
	switch {
	case err != nil:
		return nil, err
	case box != nil:
		return box.face(), nil
	case ours:
		return p.attach(ctx, h, id)
	}
	return nil, gone(id) // it is being made
}

func gone(id cove.ID) error { return cove.Errorf(cove.NotFound, "sandbox %.60s is gone", string(id)) }

// attach takes up a sandbox of an earlier process, or ends what is left of it.
func (p *Provider) attach(ctx context.Context, h *hostSide, id cove.ID) (cove.Sandbox, error) {
	s, err := p.takeUp(ctx, h, id)
	p.books.TookUp(id, s)
	switch {
	case err == nil:
		go s.watch()
		return s.face(), nil
	case errors.Is(err, os.ErrNotExist):
		return nil, gone(id)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	// What does not answer is lost.
	if end := h.sweepBox(ctx, id); end != nil {
		return nil, end
	}
	return nil, cove.Wrap(cove.NotFound, err, "sandbox %.60s is gone: %s", string(id), cove.MessageOf(err))
}

// takeUp greets the agent of a sandbox once more.
func (p *Provider) takeUp(ctx context.Context, h *hostSide, id cove.ID) (*sandbox, error) {
	n, err := h.notes.read(id)
	if err != nil {
		return nil, err
	}
	m := &made{h: h, name: n.Bundle, places: n.Places, root: &root{key: n.Root}}
	if h.groups != nil {
		if g, err := h.groups.Group(n.Bundle); err == nil {
			m.group = g
		}
	}
	ctx, cancel := context.WithTimeout(ctx, attachPatience)
	defer cancel()
	// An agent that was paused cannot answer. Who wants it paused says so again.
	if n.Paused {
		_ = h.run.resume(ctx, m.name)
	}
	s := newSandbox(p, id, m, n)
	if s.conn, err = m.connect(ctx, m.options(n.Spec, n.Env)); err != nil {
		return nil, err
	}
	if err = s.conn.Reconcile(ctx); err == nil {
		err = s.conn.Forget(ctx, aheadName) // it was the earlier process's
	}
	if err == nil {
		err = s.leave(ctx, n.Spec.Network)
	}
	if err != nil {
		_ = s.conn.Close()
		return nil, err
	}
	return s, nil
}
