package local

import (
	"context"
	"sync"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// spare is a sandbox that waits for its id and its bounds.
type spare struct {
	p    *Provider
	mold cove.Mold
	made *made
	conn inside

	mu   sync.Mutex
	used bool
	warm *warmth // nil while nothing was started in it; not changed once it is used
}

// sparePlaces are those of a sandbox that nobody has yet.
var sparePlaces = fence.Places{Workspace: fence.Bounds{Size: 1 << 20, Files: 16}, Temp: fence.Bounds{Size: 1 << 20, Files: 16}}

// Prepare implements [cove.Preparer].
func (p *Provider) Prepare(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	return p.prepare(ctx, m, false)
}

// PrepareSolo implements [cove.Soloist].
func (p *Provider) PrepareSolo(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	s, err := p.prepare(ctx, m, true)
	if err != nil {
		return nil, err
	}
	return lone{s}, nil
}

func (p *Provider) prepare(ctx context.Context, m cove.Mold, solo bool) (cove.Spare, error) {
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	h, caps, spec, err := p.admit(ctx, cove.NewID(), cove.Spec{Template: m.Template, Workspace: cove.Workspace{Kind: m.Workspace}, Resources: m.Resources})
	if err != nil {
		return nil, err
	}
	if m.Workspace == cove.WorkspaceDisk {
		return &cold{p: p, mold: m}, nil
	}
	w := wish{template: spec.Template, places: sparePlaces, handles: true, solo: solo}
	if solo { // nobody else is given it, so it can have its limits before anybody waits for them
		w.limit = func(m *made) error { return m.limit(spec, caps.For(spec.Workspace.Kind)) }
	}
	built, err := h.make(ctx, h.newName(), w)
	if err != nil {
		return nil, err
	}
	// The agent answers now, and not when somebody waits for it.
	conn, err := built.connect(ctx, guest.Options{})
	if err != nil {
		return nil, joined(err, built.drop(context.WithoutCancel(ctx)))
	}
	s := &spare{p: p, mold: m, made: built, conn: conn}
	if err := p.books.Keep(s); err != nil {
		return nil, joined(err, s.free(ctx))
	}
	return s, nil
}

// use reports whether the spare was still to be had.
func (s *spare) use() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.used
	s.used = true
	return first
}

// Claim implements [cove.Spare].
func (s *spare) Claim(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if err := s.p.books.Enter(); err != nil {
		return nil, joined(err, s.Discard(ctx))
	}
	defer s.p.books.Leave()
	if !s.use() {
		return nil, usedUp()
	}
	if spec.Snapshot != "" { // what a spare has is empty
		if err := s.free(ctx); err != nil {
			return nil, err
		}
		return s.p.Create(ctx, id, spec)
	}
	select {
	case <-s.conn.Done(): // it died while it waited, and nobody has lost anything
		if err := s.free(ctx); err != nil {
			return nil, err
		}
		return s.p.Create(ctx, id, spec)
	default:
	}
	h, caps, spec, err := s.p.admit(ctx, id, spec)
	if err == nil && (spec.Template != s.mold.Template || spec.Workspace.Kind != s.mold.Workspace) {
		err = cove.Errorf(cove.Invalid, "the spec does not fit the spare; create a sandbox instead")
	}
	if err == nil && (!s.fits(spec) || s.made.limit(spec, caps.For(spec.Workspace.Kind)) != nil) {
		if err := s.free(ctx); err != nil {
			return nil, err
		}
		return s.p.Create(ctx, id, spec)
	}
	if err == nil {
		err = s.p.reserve(id)
	}
	if err != nil {
		return nil, joined(err, s.free(ctx))
	}
	if err = s.warm.suit(ctx, spec.Resources); err == nil {
		err = h.resize(ctx, s.made, placesOf(spec))
	}
	if err != nil {
		s.p.books.Release(id)
		return nil, joined(err, s.free(ctx))
	}
	box, err := s.p.settle(ctx, s.made, s.conn, id, spec, caps)
	if err == nil {
		s.warm.belong(box)
	}
	s.p.books.Use(s)
	return box, err
}

// fits reports whether what was made can become what a spec asks for: what is
// mounted in a sandbox is decided when it is made.
func (s *spare) fits(spec cove.Spec) bool {
	// A limit that was set cannot be taken away.
	limited := s.mold.Resources != cove.Resources{} && s.mold.Resources != spec.Resources
	return len(spec.Volumes) == 0 && s.made.isCurrent(spec.Template) && !s.warm.unbinds(spec.Resources) && !limited
}

// resize gives places that nobody has used their bounds.
func (h *hostSide) resize(ctx context.Context, m *made, to fence.Places) error {
	defer m.closeHandles()
	if m.shelf != nil {
		m.shelf.bounds = to.Workspace // nobody else has it yet
		to.Workspace.Files += layerDirs
	}
	var err error
	if h.become {
		err = fence.Resize(m.handles, to)
	} else {
		_, spawner, broken := m.kit.builders()
		if broken != nil {
			return broken
		}
		err = spawner.Resize(ctx, m.handles, to)
	}
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "the workspace of a sandbox cannot be given its size")
	}
	return nil
}

// Discard implements [cove.Spare].
func (s *spare) Discard(ctx context.Context) error {
	if !s.use() {
		return nil
	}
	return s.free(ctx)
}

func (s *spare) free(ctx context.Context) error {
	_ = s.conn.Close()
	err := s.made.drop(context.WithoutCancel(ctx))
	s.p.books.Use(s)
	return err
}

// joined keeps the first error first, and its code.
func joined(err, more error) error {
	if more == nil {
		return err
	}
	return cove.Wrap(cove.CodeOf(err), more, "%s", cove.MessageOf(err))
}
