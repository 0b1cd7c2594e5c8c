package duckdb

import (
	"context"
	"io"
	"math"
	"path"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Driver opens helpers. Its methods are safe for concurrent use. It has nothing to
// close: helpers end with the places they are in, if not before.
type Driver struct {
	tool   cove.Tool
	limits Limits
	digest func() (string, error) // of the executable; read once
	packed func() (io.ReadCloser, error)
}

// New returns a Driver of an executable, and starts nothing.
func New(tool cove.Tool, limits Limits) *Driver {
	return &Driver{
		tool: tool, limits: limits.withDefaults(),
		digest: sync.OnceValues(func() (string, error) { return digestOf(tool) }),
	}
}

// Packed has the driver bring a copy of the executable into sandboxes that is
// compressed by gzip already, which takes a good part of the time. Call it before the
// driver is used.
func (d *Driver) Packed(open func() (io.ReadCloser, error)) *Driver {
	d.packed = open
	return d
}

// Tool is the executable.
func (d *Driver) Tool() cove.Tool { return d.tool }

// Open starts a helper in a place. It outlives ctx, and belongs to the caller, who
// closes it.
func (d *Driver) Open(ctx context.Context, in cove.Starter, o Options) (*Helper, error) {
	h := newHelper(d.limits, in, o)
	if err := h.take(ctx); err != nil {
		return nil, err
	}
	defer h.give()
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	return h, nil
}

// kept is the name of the helper among what is kept of a place.
const kept = "duckdb"

// berth is where the helper of a place is, or will be.
type berth struct {
	turn   chan struct{} // holds one element while the helper is made
	helper *Helper       // nil before
}

// At returns the helper of a place, the same one as long as the place lives, and
// brings the executable there where it is not mounted. It ends with the place.
func (d *Driver) At(ctx context.Context, place cove.RunSandbox) (*Helper, error) {
	found, _ := place.Keep.LoadOrStore(kept, &berth{turn: make(chan struct{}, 1)})
	b, ok := found.(*berth)
	if !ok {
		return nil, cove.Errorf(cove.Internal, "something else is kept of the place as %q", kept)
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b.helper != nil {
		return b.helper, nil
	}
	o := Options{Path: path.Join(cove.ToolPath, d.tool.Name), Memory: place.Memory, Threads: int(math.Floor(place.CPUs))}
	if o.Memory == 0 {
		o.Memory = usualMemory
	}
	if !place.Mounted {
		var err error
		if o.Path, err = d.Put(ctx, place); err != nil {
			return nil, err
		}
	}
	h, err := d.Open(ctx, place.Sandbox, o)
	if err == nil {
		b.helper = h
	}
	return h, err
}

// usualMemory is what a helper may have where nobody knows what the place has.
const usualMemory = 512 * cove.MiB
