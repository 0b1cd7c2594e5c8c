package local

import (
	"context"
	"sync/atomic"

	"github.com/cove-sandbox/cove"
)

// cold is a spare of which nothing is made yet: a workspace on disk has its size
// from the beginning, and nobody has named one.
type cold struct {
	p    *Provider
	mold cove.Mold
	used atomic.Bool
}

// Claim implements [cove.Spare].
func (c *cold) Claim(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if c.used.Swap(true) {
		return nil, usedUp()
	}
	template := spec.Template
	if template == "" {
		template = Base
	}
	if template != c.mold.Template || spec.Workspace.Kind != c.mold.Workspace {
		return nil, cove.Errorf(cove.Invalid, "the spec does not fit the spare; create a sandbox instead")
	}
	return c.p.Create(ctx, id, spec)
}

// Discard implements [cove.Spare].
func (c *cold) Discard(context.Context) error {
	c.used.Store(true)
	return nil
}
