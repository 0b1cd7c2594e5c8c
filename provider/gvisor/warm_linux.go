package gvisor

import (
	"context"
	"errors"
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
	if s := w.box.Load(); s != nil {
		return newKillable(w.Process, s, 0).Kill(ctx)
	}
	return w.Process.Kill(ctx)
}

var _ cove.SpareStarter = (*spare)(nil)

// StartIn implements [cove.SpareStarter]. All programs of a spare have the same
// resources, and end with it if Claim has to make the sandbox anew; those that
// may have another number of processes than the spec says end with Claim.
func (s *spare) StartIn(ctx context.Context, cmd cove.Command, r cove.Resources) (cove.Process, error) {
	if !cmd.Record {
		cmd.Keep, cmd.Note = "", nil // a spare has no holder
	}
	return s.start(ctx, r, func(ctx context.Context) (cove.Process, error) { return s.conn.Start(ctx, cmd) })
}

// start starts a program in a spare, with the bounds of all that are.
func (s *spare) start(ctx context.Context, r cove.Resources, begin func(context.Context) (cove.Process, error)) (cove.Process, error) {
	if err := s.p.books.Enter(); err != nil {
		return nil, err
	}
	defer s.p.books.Leave()
	if err := s.bind(ctx, r); err != nil {
		return nil, err
	}
	p, err := begin(ctx)
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
func (s *spare) bind(ctx context.Context, r cove.Resources) error {
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
	if err := errors.Join(spec.Validate(), fits(spec)); err != nil {
		return err
	}
	has := s.made.h.capabilities().For(s.mold.Workspace)
	if err := s.made.limit(spec, has); err != nil {
		return err
	}
	s.conn.Adopt(s.made.options(spec, s.made.base.env))
	if err := s.made.watch(ctx, s.conn, spec); err != nil {
		return err
	}
	s.warm = &warmth{bound: r}
	return nil
}

// unbinds reports whether bounds would have to be lifted, which cannot be done.
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
