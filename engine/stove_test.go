package engine_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// stove is a provider in whose spares programs can be started.
type stove struct {
	cove.Provider

	mu      sync.Mutex
	started int   // programs in spares
	refuse  error // of Claim
	wrap    func(*pan) cove.Spare
}

func (p *stove) Unwrap() cove.Provider { return p.Provider }

func (p *stove) Prepare(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	preparer, _ := cove.As[cove.Preparer](p.Provider)
	s, err := preparer.Prepare(ctx, m)
	if err != nil {
		return nil, err
	}
	made := &pan{Spare: s, p: p}
	if p.wrap != nil {
		return p.wrap(made), nil
	}
	return made, nil
}

// pan is a spare of a stove.
type pan struct {
	cove.Spare

	p *stove
}

func (s *pan) StartIn(context.Context, cove.Command, cove.Resources) (cove.Process, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.started++
	return nil, nil //nolint:nilnil // nobody looks at it
}

// ahead is a spare that starts Python with modules imported.
type ahead struct {
	*pan

	modules []string
	err     error
}

func (s *ahead) StartPreloaded(_ context.Context, _ cove.Command, _ cove.Resources, modules []string) (cove.Process, error) {
	s.modules = append(s.modules, modules...)
	return nil, s.err
}

func (s *pan) Claim(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if s.p.refuse != nil {
		return nil, errors.Join(s.p.refuse, s.Discard(ctx))
	}
	return s.Spare.Claim(ctx, id, spec)
}

// dishes are interpreters that remember what is done to them.
type dishes struct {
	mu     sync.Mutex
	all    []*dish
	old    []*dish       // that the test does not look at any more
	wait   chan struct{} // not nil: warm ones are ready when it is closed
	refuse error         // of Adopt
	broken error         // of Open
}

// dish is one interpreter.
type dish struct {
	k    *dishes
	in   cove.Starter
	spec cove.KernelSpec

	dir    string // where it was adopted
	env    map[string]string
	runs   int
	closed bool
}

func (k *dishes) Languages() []string { return []string{"python", "node", "bash"} }

func (k *dishes) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	if k.broken != nil && spec.Warm {
		return nil, k.broken
	}
	if spec.Warm && k.wait != nil {
		select {
		case <-k.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if _, err := in.Start(ctx, cove.Command{Argv: []string{"true"}}); err != nil {
		return nil, err
	}
	d := &dish{k: k, in: in, spec: spec}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, d)
	return d, nil
}

func (d *dish) Adopt(_ context.Context, dir string, env map[string]string) error {
	d.k.mu.Lock()
	defer d.k.mu.Unlock()
	d.dir, d.env = dir, maps.Clone(env)
	return d.k.refuse
}

func (d *dish) Run(context.Context, cove.KernelRun) (*cove.CodeResult, error) {
	d.k.mu.Lock()
	defer d.k.mu.Unlock()
	d.runs++
	return &cove.CodeResult{}, nil
}

func (d *dish) Interrupt(context.Context) error { return nil }

func (d *dish) Alive() bool {
	d.k.mu.Lock()
	defer d.k.mu.Unlock()
	return !d.closed
}

func (d *dish) Close(context.Context) error {
	d.k.mu.Lock()
	defer d.k.mu.Unlock()
	d.closed = true
	return nil
}

// brief is what a test looks at.
type brief struct {
	Language string
	Warm     bool
	Dir      string
	Runs     int
	Closed   bool
}

func (k *dishes) brief() []brief {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []brief
	for _, d := range k.all {
		all = append(all, brief{d.spec.Language, d.spec.Warm, d.dir, d.runs, d.closed})
	}
	return all
}

func (k *dishes) first() *dish {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[0]
}

func (k *dishes) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.old = append(k.old, k.all...)
	k.all = nil
}

// inKitchen runs a test with an engine whose pool is filled with one warm spare.
func inKitchen(t *testing.T, test func(t *testing.T, k *dishes, st *stove, p cove.Platform), change ...func(*engine.Config)) {
	t.Helper()
	k, st := &dishes{}, &stove{}
	warm := func(c *engine.Config) {
		st.Provider = c.Providers[0]
		c.Providers, c.Kernels = []cove.Provider{st}, map[string]cove.Kernels{"": k}
		c.Warm, c.PoolSize = true, 1
		c.Preload = func(template, language string) []string { return []string{template + "-" + language} }
	}
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		t.Helper()
		mustOpen(t, p, cove.Spec{}) // teaches the pool what is wanted
		after(time.Minute)
		test(t, k, st, p)
	}, append([]func(*engine.Config){warm}, change...)...)
	for _, d := range append(k.old, k.all...) {
		if !d.closed {
			t.Errorf("an interpreter for %+v is still there", d.spec)
		}
	}
}

func runIn(t *testing.T, p cove.Platform, id cove.ID, language string) {
	t.Helper()
	if _, err := p.Contexts(id).Run(t.Context(), cove.CodeRequest{Language: language, Code: "1"}); err != nil {
		t.Fatal(err)
	}
}

func wantDishes(t *testing.T, k *dishes, want ...brief) {
	t.Helper()
	if diff := cmp.Diff(want, k.brief()); diff != "" {
		t.Errorf("interpreters (-want +got):\n%s", diff)
	}
}
