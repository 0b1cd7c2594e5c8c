//go:build linux

package docker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
)

// turn is taken by who changes whether a sandbox runs.
type turn struct {
	free chan struct{} // holds one value while nobody has the turn

	paused bool       // guarded by the turn
	usage  cove.Usage // guarded by the turn; what the agent said when it could
}

func newTurn() *turn {
	t := &turn{free: make(chan struct{}, 1)}
	t.free <- struct{}{}
	return t
}

func (t *turn) take(ctx context.Context) error {
	select {
	case <-t.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *turn) give() { t.free <- struct{}{} }

// pausable is a sandbox that can be stopped.
type pausable struct{ *sandbox }

var _ cove.Pauser = pausable{}

// Unwrap lets [cove.As] find the powers below.
func (l pausable) Unwrap() cove.Sandbox { return l.sandbox }

// Pause implements [cove.Pauser].
func (l pausable) Pause(ctx context.Context) error {
	return l.change(ctx, func(e *engine) error {
		if l.pausing.paused {
			return nil
		}
		look, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if u, err := l.conn.Load().Usage(look); err == nil {
			l.pausing.usage = u
		}
		if err := e.freeze(ctx, l.container); err != nil {
			return err
		}
		l.hold(true)
		return l.rewrite(func(n *note) { n.Paused = true })
	})
}

// hold notes whether a sandbox is stopped. Who does it has the turn.
func (s *sandbox) hold(paused bool) {
	s.pausing.paused = paused
	s.conn.Load().Still(paused)
}

// Resume implements [cove.Pauser].
func (l pausable) Resume(ctx context.Context) error {
	return l.change(ctx, func(e *engine) error {
		if !l.pausing.paused {
			return nil
		}
		if err := e.thaw(ctx, l.container); err != nil {
			return err
		}
		l.hold(false)
		return l.rewrite(func(n *note) { n.Paused = false })
	})
}

// change does something to a sandbox that is there.
func (l pausable) change(ctx context.Context, do func(*engine) error) error {
	if err := l.pausing.take(ctx); err != nil {
		return err
	}
	defer l.pausing.give()
	if l.isGone() {
		return l.goneError()
	}
	e, err := l.p.open()
	if err != nil {
		return err
	}
	if err = do(e); err != nil && l.isGone() {
		return l.goneError()
	}
	return err
}

// freeze stops a container. One that is stopped already is no error.
func (e *engine) freeze(ctx context.Context, container string) error {
	do, cancel := within(ctx, doPatience)
	defer cancel()
	_, err := e.ContainerPause(do, container, client.ContainerPauseOptions{})
	if err != nil && strings.Contains(err.Error(), "already paused") {
		return nil
	}
	return e.fault(ctx, err, "pause a container")
}

// thaw lets a container go on. An engine may take a moment to notice that it was
// stopped.
func (e *engine) thaw(ctx context.Context, container string) error {
	do, cancel := within(ctx, doPatience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for tries := 0; ; tries++ {
		_, err := e.ContainerUnpause(do, container, client.ContainerUnpauseOptions{})
		if err == nil || !strings.Contains(err.Error(), "not paused") || tries >= 5 {
			return e.fault(ctx, err, "let a container go on")
		}
		select {
		case <-tick.C:
		case <-do.Done():
			return e.fault(ctx, do.Err(), "let a container go on")
		}
	}
}

// Usage implements [cove.Sandbox]. While the agent cannot answer, what it said
// before still holds: nothing changes.
func (l pausable) Usage(ctx context.Context) (cove.Usage, error) {
	if err := l.pausing.take(ctx); err != nil {
		return cove.Usage{}, err
	}
	paused, u := l.pausing.paused && !l.isGone(), l.pausing.usage
	l.pausing.give()
	if !paused {
		return l.sandbox.Usage(ctx)
	}
	return l.counted(ctx, u)
}

// Start implements [cove.Sandbox]. In a paused sandbox it waits.
func (l pausable) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	p, err := l.sandbox.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return killable{p, l}, nil
}

// killable is a program that can be killed while it is paused.
type killable struct {
	cove.Process

	l pausable
}

// endPatience bounds how long a paused sandbox runs so that one of its programs can
// end.
const endPatience = 5 * time.Second

// Kill implements [cove.Process]. It takes the agent to end a whole tree of
// processes, so a paused sandbox runs for as long as that takes.
func (k killable) Kill(ctx context.Context) error {
	t := k.l.pausing
	if err := t.take(ctx); err != nil {
		return err
	}
	if !t.paused || k.l.isGone() {
		t.give()
		return k.Process.Kill(ctx)
	}
	defer t.give()
	e, err := k.l.p.open()
	if err != nil {
		return err
	}
	if err := e.thaw(ctx, k.l.container); err != nil && !k.l.isGone() {
		return err
	}
	err = k.Process.Kill(ctx)
	if err == nil { // its end is to be heard of, too
		wait, cancel := context.WithTimeout(ctx, endPatience)
		defer cancel()
		_, _ = k.Wait(wait)
	}
	if again := e.freeze(context.WithoutCancel(ctx), k.l.container); again != nil && !k.l.isGone() {
		k.l.hold(false)
		return cove.Wrap(cove.Unavailable, errors.Join(err, again), "the sandbox cannot be paused again").Remedy("pause it once more")
	}
	return err
}
