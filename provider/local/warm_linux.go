package local

import (
	"context"
	"sync/atomic"

	"github.com/cove-sandbox/cove"
)

// warmth is what runs in a spare before it is anybody's.
type warmth struct {
	bound    cove.Resources
	programs []*warmed
}

// warmed is a program that was started in a spare.
type warmed struct {
	cove.Process

	box atomic.Pointer[sandbox] // that the spare became
}

// Kill implements [cove.Process]. What it runs in may be paused by now.
func (w *warmed) Kill(ctx context.Context) error {
	if s := w.box.Load(); s != nil && s.freezer != nil {
		return killable{w.Process, s, s.freezer}.Kill(ctx)
	}
	return w.Process.Kill(ctx)
}

var (
	_ cove.SpareStarter   = (*spare)(nil)
	_ cove.SparePreloader = (*spare)(nil)
)

// lone is a spare in which nothing can be started before it is claimed.
type lone struct{ cove.Spare }

// StartIn implements [cove.SpareStarter]. All programs of a spare have the same
// resources, and end with it if Claim has to make the sandbox anew; those that
// may have another number of processes than the spec says end with Claim.
func (s *spare) StartIn(ctx context.Context, cmd cove.Command, r cove.Resources) (cove.Process, error) {
	return s.startIn(ctx, cmd, r, s.conn.Start)
}

func (s *spare) startIn(ctx context.Context, cmd cove.Command, r cove.Resources, start func(context.Context, cove.Command) (cove.Process, error)) (cove.Process, error) {
	if err := s.p.books.Enter(); err != nil {
		return nil, err
	}
	defer s.p.books.Leave()
	if err := s.bind(r); err != nil {
		return nil, err
	}
	if !cmd.Record { // a spare has no holder, and what is recorded is held with its first mark
		cmd.Keep, cmd.Note = "", nil
	}
	p, err := start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	w := &warmed{Process: p}
	s.mu.Lock()
	used := s.used
	if !used {
		s.warm.programs = append(s.warm.programs, w)
	}
	s.mu.Unlock()
	if used {
		_ = p.Kill(context.WithoutCancel(ctx))
		// Not a conflict: what the program was to read may be gone, so that nobody can
		// start it in another way.
		return nil, cove.Errorf(cove.Unavailable, "the spare was claimed while a program started in it")
	}
	return w, nil
}

func usedUp() error { return cove.Errorf(cove.Conflict, "the spare is used up") }

// bind puts the bounds of what is started in it on a spare that is nobody's yet.
func (s *spare) bind(r cove.Resources) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.used:
		return usedUp()
	case s.warm != nil && s.warm.bound == r:
		return nil
	case s.warm != nil:
		return cove.Errorf(cove.Conflict, "programs run in the spare with other resources")
	}
	spec := cove.Spec{Template: s.mold.Template, Workspace: cove.Workspace{Kind: s.mold.Workspace}, Resources: r}
	if err := spec.Validate(); err != nil {
		return err
	}
	if err := s.made.limit(spec, s.made.host.capabilities().For(s.mold.Workspace)); err != nil {
		return err
	}
	s.conn.Adopt(s.made.options(spec, s.made.env, s.made.kit.searched()))
	s.warm = &warmth{bound: r}
	return nil
}

// unbinds reports whether bounds would have to be lifted, which a control group
// of ours cannot do.
func (w *warmth) unbinds(r cove.Resources) bool {
	return w != nil && (w.bound.Memory > 0 && r.Memory == 0 || w.bound.CPUs > 0 && r.CPUs == 0 || w.bound.PIDs > 0 && r.PIDs == 0)
}

// suit ends the programs that cannot be given the bounds of a spec: nobody can
// change how many processes a program that runs may have.
func (w *warmth) suit(ctx context.Context, r cove.Resources) error {
	if w == nil || w.bound.PIDs == r.PIDs {
		return nil
	}
	for _, p := range w.programs {
		if err := p.Kill(ctx); err != nil {
			return err
		}
	}
	return nil
}

// belong tells the programs of a spare what it has become.
func (w *warmth) belong(box cove.Sandbox) {
	s, ok := cove.As[*sandbox](box)
	if w == nil || !ok {
		return
	}
	for _, p := range w.programs {
		p.box.Store(s)
	}
}
