//go:build linux

package docker

import (
	"context"

	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
)

// Attach implements [cove.Provider]: it finds the sandboxes of this process, and
// those that an earlier one wrote down.
func (p *Provider) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	if !id.Valid() {
		return nil, absent(id)
	}
	box, ours, err := p.books.TakeUp(ctx, id, nil)
	switch {
	case err != nil:
		return nil, err
	case box != nil:
		return box.face(), nil
	case ours:
		return p.attach(ctx, id)
	}
	return nil, absent(id) // it is being made
}

func absent(id cove.ID) error {
	return cove.Errorf(cove.NotFound, "sandbox %.60s is gone", string(id))
}

// attach takes up a sandbox of an earlier process.
func (p *Provider) attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	s, err := p.takeUp(ctx, id)
	p.books.TookUp(id, s)
	if err != nil {
		return nil, err
	}
	s.begin()
	return s.face(), nil
}

// takeUp opens a new door into a container.
func (p *Provider) takeUp(ctx context.Context, id cove.ID) (*sandbox, error) {
	n, ok := p.readNote(id)
	if !ok {
		return nil, absent(id)
	}
	e, owner, err := p.mine()
	if err != nil {
		return nil, err
	}
	ask, cancel := within(ctx, doPatience)
	defer cancel()
	found, err := e.ContainerInspect(ask, n.Container, client.ContainerInspectOptions{})
	switch {
	case isGone(err):
		return nil, absent(id)
	case err != nil:
		return nil, e.fault(ctx, err, "look at a container")
	}
	c := found.Container
	if c.State == nil || !c.State.Running || c.Config == nil || c.Config.Labels[labelOwner] != owner || c.Name != "/"+prefix+string(id) && c.Name != prefix+string(id) {
		return nil, absent(id)
	}
	if c.State.Paused { // its agent has to answer
		if err := e.thaw(ctx, n.Container); err != nil {
			return nil, err
		}
	}
	m := &made{container: n.Container, lost: &loss{}}
	if m.conn, err = p.greetAgent(ask, e, m, (&sandbox{note: n}).options()); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	s := p.box(m, id, n)
	if err := s.depart(ask, n.Spec.Network); err != nil {
		m.conn.Leave()
		return nil, err
	}
	return s, nil
}
