package fake

import (
	"context"
	"sync/atomic"

	"github.com/cove-sandbox/cove"
)

// sandbox is one live directory.
type sandbox struct {
	provider *Provider
	id       cove.ID
	spec     cove.Spec
	iso      cove.Isolation
	tree     *tree
	machine  *machine
	face     cove.Sandbox // what callers hold: the sandbox with its powers

	gone  atomic.Bool
	turn  chan struct{} // holds one while somebody destroys
	freed bool          // guarded by turn
}

var _ cove.Sandbox = (*sandbox)(nil)

func newSandbox(p *Provider, id cove.ID, spec cove.Spec, iso cove.Isolation, t *tree) *sandbox {
	s := &sandbox{
		provider: p, id: id, spec: spec, iso: iso, tree: t,
		machine: newMachine(id, spec, iso, t, p.tools), turn: make(chan struct{}, 1),
	}
	if spec.Network.Mode != cove.NetworkNone && p.has(cove.PowerEgress) {
		s.machine.facts.Load().out = newGateway(spec.Network, p.cfg.World)
	}
	s.face = s.layers()
	return s
}

// ID implements [cove.Sandbox].
func (s *sandbox) ID() cove.ID { return s.id }

// Isolation implements [cove.Sandbox].
func (s *sandbox) Isolation() cove.Isolation { return s.iso }

// Usage implements [cove.Sandbox].
func (s *sandbox) Usage(ctx context.Context) (cove.Usage, error) {
	if err := s.ready(ctx, "usage"); err != nil {
		return cove.Usage{}, err
	}
	return s.machine.usage(), nil
}

// ready begins a call: the caller is still there, the hook agrees and the
// sandbox lives.
func (s *sandbox) ready(ctx context.Context, step string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.gone.Load() {
		return s.errGone()
	}
	if err := s.provider.hook(step, s.id); err != nil {
		return err
	}
	if s.gone.Load() {
		return s.errGone()
	}
	return nil
}

func (s *sandbox) errGone() error {
	return cove.Errorf(cove.NotFound, "sandbox %s is gone", s.id)
}

// stop ends the programs and lets go of the files.
func (s *sandbox) stop() {
	s.gone.Store(true)
	s.machine.shutdown()
	s.tree.close()
}

// Destroy implements [cove.Sandbox].
func (s *sandbox) Destroy(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.freed {
		return nil
	}
	if err := s.provider.enter(ctx, "destroy.begin", s.id); err != nil {
		return err
	}
	s.stop()
	if err := s.provider.hook("destroy.files", s.id); err != nil {
		return err
	}
	if err := s.provider.erase(string(s.id)); err != nil {
		return err
	}
	s.freed = true
	s.provider.cfg.Keeper.drop(s.id)
	s.provider.mu.Lock()
	defer s.provider.mu.Unlock()
	delete(s.provider.boxes, s.id)
	return nil
}
