package fake

import (
	"context"
	"maps"

	"github.com/cove-sandbox/cove"
)

var _ cove.SpareStarter = (*spare)(nil)

// StartIn implements [cove.SpareStarter].
func (s *spare) StartIn(ctx context.Context, cmd cove.Command, r cove.Resources) (cove.Process, error) {
	if err := s.p.enter(ctx, "start_in", ""); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used {
		return nil, cove.Errorf(cove.Conflict, "the spare is used up")
	}
	if s.warm != nil && s.warm.spec.Resources != r {
		return nil, cove.Errorf(cove.Conflict, "programs run in the spare with other resources")
	}
	if s.warm == nil {
		if err := s.open(r); err != nil {
			return nil, err
		}
	}
	cmd.Keep, cmd.Note = "", nil // nobody holds a spare
	return s.warm.machine.start(cmd)
}

// open makes what programs run in. Called with mu held.
func (s *spare) open(r cove.Resources) error {
	spec := cove.Spec{Template: s.mold.Template, Workspace: cove.Workspace{Kind: s.mold.Workspace}, Resources: r}
	if err := spec.Validate(); err != nil {
		return err
	}
	box, err := s.p.root.OpenRoot(string(s.dir))
	if err != nil {
		return s.p.makeError(s.dir, err)
	}
	defer func() { _ = box.Close() }()
	s.warm, err = s.p.open(s.dir, spec, box, true)
	return err
}

func (s *spare) isWarm() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.warm != nil
}

// take returns what programs run in, which is the caller's then; nil if there is
// nothing.
func (s *spare) take() *sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	warm := s.warm
	s.warm = nil
	return warm
}

// stop ends what runs in it.
func (s *spare) stop() {
	if warm := s.take(); warm != nil {
		warm.stop()
	}
}

// adopt makes what programs run in a sandbox with an id, whose directory is there
// already. With an error nothing is left.
func (p *Provider) adopt(warm *sandbox, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	n, err := p.readopt(warm, id, spec)
	if err != nil {
		warm.stop()
		return nil, after(p.makeError(id, err), p.erase(string(id)))
	}
	return p.register(n), nil
}

func (p *Provider) readopt(warm *sandbox, id cove.ID, spec cove.Spec) (*sandbox, error) {
	if err := p.hook("create.made", id); err != nil {
		return nil, err
	}
	if spec.Resources.PIDs != warm.spec.Resources.PIDs {
		warm.machine.kill(func(*proc) bool { return true }, cove.Killed)
	}
	n := newSandbox(p, id, spec, p.caps.For(spec.Workspace.Kind), warm.tree)
	warm.machine.adopt(n.machine)
	n.machine = warm.machine
	n.tree.bound(p.quota(spec))
	box, err := p.root.OpenRoot(string(id))
	if err != nil {
		return nil, err
	}
	defer func() { _ = box.Close() }()
	return n, mark(box, spec)
}

// adopt makes a machine what another one is that nothing runs on. Its programs
// stay.
func (m *machine) adopt(as *machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.maxMem, m.maxPIDs = as.maxMem, as.maxPIDs
	m.facts.Store(as.facts.Load())
}

// facts is what a machine says of itself.
type facts struct {
	env  map[string]string
	host string
	cpus int
	out  *gateway // the way out; nil where there is none
}

// environment is what every program gets.
func (m *machine) environment() map[string]string { return maps.Clone(m.facts.Load().env) }

// way is the way out; nil where there is none.
func (m *machine) way() *gateway { return m.facts.Load().out }
