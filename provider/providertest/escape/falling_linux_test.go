package escape_test

import (
	"context"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// falling is a provider with kernels of their own, whose sandboxes end when they take
// too much: each alone, or all of them with it.
type falling struct {
	*open

	all  bool
	fell bool
}

func (f *falling) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	box, err := f.open.Create(ctx, id, spec)
	return fallingBox{box, f}, err
}

type fallingBox struct {
	cove.Sandbox

	f *falling
}

func (b fallingBox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	bomb := cmd.Argv[0] == "dd"
	if b.f.fell = b.f.fell || bomb; bomb || b.f.fell && b.f.all {
		return nil, cove.Errorf(cove.Unavailable, "the sandbox is gone")
	}
	return b.Sandbox.Start(ctx, cmd)
}

// TestASandboxMayEndItselfAlone: with a kernel of its own it may end for want of
// memory, and another one must not end with it.
func TestASandboxMayEndItselfAlone(t *testing.T) {
	for _, all := range []bool{false, true} {
		p := &open{t: t, caps: func(c *cove.Capabilities) { c.Isolation.Boundary = cove.BoundaryMicroVM }}
		f, err := escape.RunOne(t.Context(), &falling{open: p, all: all}, "memory_bomb", escape.Exec, escape.Options{})
		if err != nil || f.Skipped != "" || f.Held == all {
			t.Errorf("all of them: %v: %+v, %v", all, f, err)
		}
		if p.boxes != 0 {
			t.Errorf("%d sandboxes are left", p.boxes)
		}
	}
}
