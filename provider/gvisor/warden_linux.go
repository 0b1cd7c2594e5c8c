package gvisor

import (
	"context"

	"github.com/cove-sandbox/cove/provider/gvisor/warden"
)

// wardened drives the runtime of this build: what others start a process for is
// asked of one that runs already. Sandboxes are still made by a process of their
// own.
type wardened struct {
	*cli

	warden *warden.Warden
}

var _ runtime = wardened{}

// newWardened is a runtime whose executable can be a warden.
func newWardened(c *cli, path string) wardened {
	return wardened{c, warden.New(path, c.flags("/dev/null")...)}
}

// enter implements [runtime].
func (w wardened) enter(ctx context.Context, id string, e entry) (*entered, error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	s, err := newStreams()
	if err != nil {
		return nil, err
	}
	err = w.warden.Enter(ctx, id, warden.Program{Argv: e.argv, Env: []string{agentEnv}, Admin: e.mount}, warden.Streams{In: s.in, Out: s.out, Err: s.errs})
	s.closeTheirs()
	if err != nil {
		s.closeOurs()
		_ = s.fromErrs.Close()
		return nil, err
	}
	return s.entered(func() {}), nil
}

// pause implements [runtime].
func (w wardened) pause(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	return w.warden.Pause(ctx, id)
}

// resume implements [runtime].
func (w wardened) resume(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	return w.warden.Resume(ctx, id)
}

// checkpoint implements [runtime].
func (w wardened) checkpoint(ctx context.Context, id, image string) error {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	return w.warden.Checkpoint(ctx, id, image)
}

// remove implements [runtime].
func (w wardened) remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	return w.warden.Remove(ctx, id)
}

// close implements [runtime].
func (w wardened) close() error { return w.warden.Close() }
