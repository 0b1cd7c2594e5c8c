package gvisor

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// pauses is whether a sandbox stands still: all of it, its agent too.
type pauses struct {
	turn chan struct{} // holds one value while nobody changes the rest

	paused bool       // guarded by turn
	last   cove.Usage // guarded by turn; what the agent said when it could
}

func newPauses() *pauses {
	p := &pauses{turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// take waits for the turn; give ends it.
func (p *pauses) take(ctx context.Context) error {
	select {
	case <-p.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pauses) give() { p.turn <- struct{}{} }

// usage is what the agent says, or said.
func (p *pauses) usage(ctx context.Context, s *sandbox) (cove.Usage, error) {
	if err := p.take(ctx); err != nil {
		return cove.Usage{}, err
	}
	paused, last := p.paused && !s.isGone(), p.last
	p.give()
	if paused {
		return last, nil
	}
	return s.conn.Usage(ctx)
}

// lookPatience bounds the question how much there is, before a pause.
const lookPatience = time.Second

// Pause implements [cove.Pauser].
func (s *sandbox) Pause(ctx context.Context) error {
	return s.still(ctx, "paused", func(name string) error {
		if s.pauses.paused {
			return nil
		}
		look, cancel := context.WithTimeout(ctx, lookPatience)
		defer cancel()
		if u, err := s.conn.Usage(look); err == nil {
			s.pauses.last = u
		}
		// Before the pause: a process that takes over after a crash in between must know that
		// the agent may not answer. Letting a sandbox go on that runs does nothing.
		if err := s.rewrite(func(n *note) { n.Paused = true }); err != nil {
			return err
		}
		// Who is asked does it, also when nobody waits any more: to give up here would
		// leave a sandbox that stands still and is not known to.
		if err := s.made.h.run.pause(context.WithoutCancel(ctx), name); err != nil {
			return err
		}
		s.pauses.paused = true
		s.conn.Still(true)
		return nil
	})
}

// Resume implements [cove.Pauser].
func (s *sandbox) Resume(ctx context.Context) error {
	return s.still(ctx, "resumed", func(name string) error {
		if !s.pauses.paused {
			return nil
		}
		if err := s.made.h.run.resume(context.WithoutCancel(ctx), name); err != nil {
			return err
		}
		s.pauses.paused = false
		s.conn.Still(false)
		return s.rewrite(func(n *note) { n.Paused = false })
	})
}

// still does something to a sandbox that is there, while nobody else pauses or
// resumes it.
func (s *sandbox) still(ctx context.Context, what string, do func(name string) error) error {
	if err := s.pauses.take(ctx); err != nil {
		return err
	}
	defer s.pauses.give()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isGone() {
		return s.goneError()
	}
	err := do(s.made.name)
	if _, ours := errors.AsType[*cove.Error](err); ours {
		return err
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return errors.Join(err, ctx.Err())
	case s.isGone(): // meanwhile
		return s.goneError()
	}
	return cove.Wrap(cove.Unavailable, err, "sandbox %s cannot be %s", s.id, what).Remedy("try again; if it stays so, destroy the sandbox")
}

// awake does something that needs the agent, also in a paused sandbox, which runs
// for as long as that takes. The caller has the turn.
func (s *sandbox) awake(ctx context.Context, do func() error) error {
	if !s.pauses.paused {
		return do()
	}
	run := s.made.h.run
	if err := run.resume(context.WithoutCancel(ctx), s.made.name); err != nil {
		return err
	}
	err := do()
	if again := run.pause(context.WithoutCancel(ctx), s.made.name); again != nil && !s.isGone() {
		s.pauses.paused = false
		s.conn.Still(false)
		return errors.Join(err, cove.Wrap(cove.Unavailable, again, "the sandbox cannot be paused again").Remedy("pause it once more"))
	}
	return err
}

// killable is a program that can be killed while it is paused.
type killable struct {
	cove.Process

	s    *sandbox
	from time.Duration // what the sandbox had computed when it began
	over *atomic.Pointer[cove.Result]
}

func newKillable(p cove.Process, s *sandbox, from time.Duration) killable {
	return killable{p, s, from, &atomic.Pointer[cove.Result]{}}
}

// Wait implements [cove.Process]. gVisor counts the time of programs also while the
// host's kernel lets none of them run: what the host counted is the most.
func (k killable) Wait(ctx context.Context) (cove.Result, error) {
	if told := k.over.Load(); told != nil {
		return *told, nil
	}
	r, err := k.Process.Wait(ctx)
	if err != nil {
		return r, k.s.because(err)
	}
	if most := k.s.computed() - k.from; most > 0 {
		r.CPU = min(r.CPU, most)
	}
	k.over.CompareAndSwap(nil, &r) // all who wait are told the same
	return *k.over.Load(), nil
}

// endPatience bounds how long a paused sandbox runs so that one of its programs
// can end.
const endPatience = 5 * time.Second

// Kill implements [cove.Process]. It takes the agent to end a whole tree of
// processes.
func (k killable) Kill(ctx context.Context) error {
	if err := k.s.pauses.take(ctx); err != nil {
		return err
	}
	if !k.s.pauses.paused || k.s.isGone() {
		k.s.pauses.give()
		return k.Process.Kill(ctx)
	}
	defer k.s.pauses.give()
	return k.s.awake(ctx, func() error {
		if err := k.Process.Kill(ctx); err != nil {
			return err
		}
		// Its end is to be heard of, too.
		wait, cancel := context.WithTimeout(ctx, endPatience)
		defer cancel()
		_, _ = k.Wait(wait)
		return nil
	})
}
