//go:build linux

package docker

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

// resumable is a sandbox whose programs can outlive this process: the agent holds
// their streams.
type resumable struct {
	cove.Sandbox

	l pausable
}

var _ cove.Recorder = resumable{}

// Unwrap lets [cove.As] find the powers below.
func (r resumable) Unwrap() cove.Sandbox { return r.Sandbox }

// Kept implements [cove.Resumer].
func (r resumable) Kept(ctx context.Context) iter.Seq2[cove.Kept, error] {
	return r.l.link().Kept(ctx)
}

// Resume implements [cove.Resumer].
func (r resumable) Resume(ctx context.Context, keep string, cmd cove.Command) (cove.Process, error) {
	p, err := r.l.link().Resume(ctx, keep, cmd)
	if err != nil {
		return nil, err
	}
	return killable{p, r.l}, nil
}

// Mark implements [cove.Recorder].
func (r resumable) Mark(ctx context.Context, keep string, m cove.Mark) error {
	return r.l.link().Mark(ctx, keep, m)
}

// Forget implements [cove.Resumer].
func (r resumable) Forget(ctx context.Context, keep string) error {
	return r.l.link().Forget(ctx, keep)
}
