package gvisor

import (
	"context"
	"errors"
	"sync"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// spare is a sandbox that waits for its id and its bounds.
type spare struct {
	p    *Provider
	mold cove.Mold
	made *made
	conn *guest.Conn

	mu    sync.Mutex
	used  bool
	warm  *warmth      // nil while nothing was started in it; not changed once it is used
	ahead *interpreter // that waits in it; nil if there is none, or somebody took it
}

// Prepare implements [cove.Preparer]. Spares have the room for files that was last
// asked for.
func (p *Provider) Prepare(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	o, err := p.admit(ctx, cove.NewID(), cove.Spec{Template: m.Template, Workspace: cove.Workspace{Kind: m.Workspace}})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	room, ok := p.likely[m]
	p.mu.Unlock()
	if !ok {
		room = placesOf(o.spec)
	}
	s, err := p.restore(ctx, m, o, room)
	if err == nil && s == nil {
		s, err = p.boot(ctx, m, o, wish{base: o.base, places: room})
	}
	if err != nil {
		return nil, err
	}
	if err := p.books.Keep(s); err != nil {
		return nil, joined(err, s.free(ctx))
	}
	return s, nil
}

// boot makes a spare. It is given its room for files also if it goes on from an image,
// whose own somebody may have used.
func (p *Provider) boot(ctx context.Context, m cove.Mold, o order, w wish) (*spare, error) {
	built, err := o.h.make(ctx, string(cove.NewID()), w)
	if err != nil {
		return nil, err
	}
	// The agent answers now, and not when somebody waits for it.
	conn, err := built.begin(ctx, guest.Options{}, false)
	if err != nil {
		return nil, joined(err, built.drop(ctx))
	}
	return &spare{p: p, mold: m, made: built, conn: conn}, nil
}

// restore makes a spare from the image of its mold; nil where there is none that is
// good, which it may then have made for the next.
func (p *Provider) restore(ctx context.Context, m cove.Mold, o order, room places) (*spare, error) {
	dir, of, mine := p.images.find(m, o.base.digest)
	if mine != nil {
		p.develop(m, o, mine)
	}
	if dir == "" {
		return nil, nil //nolint:nilnil // none is no error: the caller boots one
	}
	s, err := p.boot(ctx, m, o, wish{base: o.base, places: room, image: dir})
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		p.images.bad(m, dir)
		return nil, nil //nolint:nilnil // as above
	}
	s.ahead = &of
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
	o, err := s.p.admit(ctx, id, spec)
	if err == nil && (o.spec.Template != s.mold.Template || o.spec.Workspace.Kind != s.mold.Workspace) {
		err = cove.Errorf(cove.Invalid, "the spec does not fit the spare; create a sandbox instead")
	}
	if err != nil {
		return nil, joined(err, s.free(ctx))
	}
	room := placesOf(o.spec)
	s.p.mu.Lock()
	s.p.likely[s.mold] = room
	s.p.mu.Unlock()
	if !s.fits(o) {
		if err := s.free(ctx); err != nil {
			return nil, err
		}
		return s.p.Create(ctx, id, spec)
	}
	if err = s.p.reserve(id); err == nil {
		if err = errors.Join(s.lonely(ctx), s.warm.suit(ctx, o.spec.Resources)); err == nil && room != s.made.places {
			// A new room lies over the one that nobody has used.
			err = explain(ctx, s.made.furnish(ctx, room))
		}
		if err != nil {
			s.p.books.Release(id)
		}
	}
	if err != nil {
		return nil, joined(err, s.free(ctx))
	}
	box, err := s.p.settle(ctx, id, o, s.made, s.conn, o.note(s.made.name))
	if err == nil {
		s.warm.belong(box)
	}
	s.p.books.Use(s)
	return box, err
}

// fits reports whether what was made can become what is ordered: what is mounted
// in a sandbox is decided when it is made.
func (s *spare) fits(o order) bool {
	select {
	case <-s.conn.Done(): // it died while it waited, and nobody has lost anything
		return false
	default:
	}
	return o.spec.Snapshot == "" && len(o.spec.Volumes) == 0 && o.base.digest == s.made.base.digest &&
		!s.warm.unbinds(o.spec.Resources)
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
	err := s.made.drop(ctx)
	s.p.books.Use(s)
	return err
}
