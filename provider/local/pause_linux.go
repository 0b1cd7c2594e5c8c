package local

import (
	"context"
	"errors"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
)

// freezer stops all processes of a sandbox, its agent among them.
type freezer struct {
	group *cgroup.Group
	turn  chan struct{} // holds one value while nobody changes the rest

	paused bool       // guarded by turn
	usage  cove.Usage // guarded by turn; what the agent said when it could
}

func newFreezer(g *cgroup.Group) *freezer {
	f := &freezer{group: g, turn: make(chan struct{}, 1)}
	f.turn <- struct{}{}
	return f
}

// take waits for the turn; give ends it.
func (f *freezer) take(ctx context.Context) error {
	select {
	case <-f.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *freezer) give() { f.turn <- struct{}{} }

// freeze stops the group, or leaves it running. The caller has the turn.
func (f *freezer) freeze(ctx context.Context) error {
	err := f.group.Freeze(ctx)
	if err != nil {
		err = errors.Join(err, f.group.Thaw(context.WithoutCancel(ctx)))
	}
	return err
}

// pausing is a sandbox that can be stopped: a layer, so that one without the
// power does not have its methods either.
type pausing struct {
	cove.Sandbox

	s *sandbox
	f *freezer
}

var _ cove.Pauser = pausing{}

// Unwrap lets [cove.As] find the powers below.
func (l pausing) Unwrap() cove.Sandbox { return l.Sandbox }

// lookPatience bounds the question how much there is, before a pause.
const lookPatience = time.Second

// Pause implements [cove.Pauser].
func (l pausing) Pause(ctx context.Context) error {
	return l.change(ctx, "paused", func() error {
		if l.f.paused {
			return nil
		}
		look, cancel := context.WithTimeout(ctx, lookPatience)
		defer cancel()
		if u, err := l.s.told(look); err == nil {
			l.f.usage = u
		}
		if err := l.f.freeze(ctx); err != nil {
			return err
		}
		l.s.still(true)
		l.f.paused = true
		return nil
	})
}

// Resume implements [cove.Pauser].
func (l pausing) Resume(ctx context.Context) error {
	return l.change(ctx, "resumed", func() error {
		if !l.f.paused {
			return nil
		}
		if err := l.f.group.Thaw(ctx); err != nil {
			return err
		}
		l.s.still(false)
		l.f.paused = false
		return nil
	})
}

// still tells the connection not to be impatient with an agent that is stopped.
func (s *sandbox) still(paused bool) {
	if c, ok := s.conn.(interface{ Still(paused bool) }); ok {
		c.Still(paused)
	}
}

// change does something to a sandbox that is there.
func (l pausing) change(ctx context.Context, what string, do func() error) error {
	if err := l.f.take(ctx); err != nil {
		return err
	}
	defer l.f.give()
	if l.s.isGone() {
		return l.s.goneError()
	}
	err := do()
	switch {
	case err == nil || ctx.Err() != nil:
		return errors.Join(err, ctx.Err())
	case l.s.isGone(): // meanwhile
		return l.s.goneError()
	}
	return cove.Wrap(cove.Unavailable, err, "sandbox %s cannot be %s", l.s.id, what).Remedy("try again; if it stays so, destroy the sandbox")
}

// Usage implements [cove.Sandbox]. While the agent cannot answer, what it said
// before still holds: nothing changes.
func (l pausing) Usage(ctx context.Context) (cove.Usage, error) {
	if err := l.f.take(ctx); err != nil {
		return cove.Usage{}, err
	}
	paused, u := l.f.paused && !l.s.isGone(), l.f.usage
	l.f.give()
	if !paused {
		return l.Sandbox.Usage(ctx)
	}
	return l.s.counted(u)
}

// Start implements [cove.Sandbox]. In a paused sandbox it waits.
func (l pausing) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	p, err := l.Sandbox.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return killable{p, l.s, l.f}, nil
}

// killable is a program that can be killed while it is paused.
type killable struct {
	cove.Process

	s *sandbox
	f *freezer
}

// endPatience bounds how long a paused sandbox runs so that one of its programs
// can end.
const endPatience = 5 * time.Second

// Kill implements [cove.Process]. It takes the agent to end a whole tree of
// processes, so a paused sandbox runs for as long as that takes.
func (k killable) Kill(ctx context.Context) error {
	if err := k.f.take(ctx); err != nil {
		return err
	}
	if !k.f.paused || k.s.isGone() {
		k.f.give()
		return k.Process.Kill(ctx)
	}
	defer k.f.give()
	if err := k.f.group.Thaw(ctx); err != nil && !k.s.isGone() {
		return cove.Wrap(cove.Unavailable, err, "a program of a paused sandbox cannot be ended").Remedy("resume the sandbox, or destroy it")
	}
	err := k.Process.Kill(ctx)
	if err == nil {
		// Its end is to be heard of, too.
		wait, cancel := context.WithTimeout(ctx, endPatience)
		defer cancel()
		_, _ = k.Wait(wait)
	}
	if frozen := k.f.freeze(context.WithoutCancel(ctx)); frozen != nil && !k.s.isGone() {
		k.s.still(false)
		k.f.paused = false
		return cove.Wrap(cove.Unavailable, errors.Join(err, frozen), "the sandbox cannot be paused again").Remedy("pause it once more")
	}
	return err
}
