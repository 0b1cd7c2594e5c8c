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
}

// sparePlaces are those of a sandbox that nobody has yet.
var sparePlaces = fence.Places{Workspace: fence.Bounds{Size: 1 << 20, Files: 16}, Temp: fence.Bounds{Size: 1 << 20, Files: 16}}

// Prepare implements [cove.Preparer].
func (p *Provider) Prepare(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	return p.prepare(ctx, m, false)
}

// PrepareSolo implements [cove.Soloist].
func (p *Provider) PrepareSolo(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	return p.prepare(ctx, m, true)
}

func (p *Provider) prepare(ctx context.Context, m cove.Mold, solo bool) (cove.Spare, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.busy.Done()
	h, _, _, err := p.admit(ctx, cove.NewID(), cove.Spec{Template: m.Template, Workspace: cove.Workspace{Kind: m.Workspace}})
	if err != nil {
		return nil, err
	}
	if m.Workspace == cove.WorkspaceDisk {
		return &cold{p: p, mold: m}, nil
	}
	built, err := h.make(ctx, cove.NewID(), wish{places: sparePlaces, handles: true, solo: solo})
	if err != nil {
		return nil, err
	}
	// The agent answers now, and not when somebody waits for it.
	conn, err := built.connect(ctx, guest.Options{})
	if err != nil {
		return nil, joined(err, built.drop(context.WithoutCancel(ctx)))
	}
	s := &spare{p: p, mold: m, made: built, conn: conn}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.spares[s] = true
	}
	p.mu.Unlock()
	if closed {
		_ = s.free(ctx)
		return nil, closedError()
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
	if err := s.p.enter(); err != nil {
		return nil, joined(err, s.Discard(ctx))
	}
	defer s.p.busy.Done()
	if !s.use() {
		return nil, cove.Errorf(cove.Conflict, "the spare is used up")
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
	if err == nil && !s.fits(spec) {
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
	if err := h.resize(ctx, s.made, placesOf(spec)); err != nil {
		s.p.forget(id)
		return nil, joined(err, s.free(ctx))
	}
	box, err := s.p.settle(ctx, s.made, s.conn, id, spec, caps)
	s.p.mu.Lock()
	delete(s.p.spares, s)
	s.p.mu.Unlock()
	return box, err
}

// fits reports whether what was made can become what a spec asks for: what is
// mounted in a sandbox is decided when it is made.
func (s *spare) fits(spec cove.Spec) bool { return len(spec.Volumes) == 0 }

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
		_, spawner, broken := h.builders()
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
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	delete(s.p.spares, s)
	return err
}

// joined keeps the first error first, and its code.
func joined(err, more error) error {
	if more == nil {
		return err
	}
	return cove.Wrap(cove.CodeOf(err), more, "%s", cove.MessageOf(err))
}
