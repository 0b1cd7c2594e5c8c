package engine_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// slowKernels start an interpreter when they are let.
type slowKernels struct {
	fake.Kernels

	asked chan struct{} // gets one for each start
	let   chan struct{} // lets one go on
	alive atomic.Int32  // interpreters that were not closed
}

func (k *slowKernels) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	k.asked <- struct{}{}
	<-k.let
	n, err := k.Kernels.Open(ctx, in, spec)
	if err != nil {
		return nil, err
	}
	k.alive.Add(1)
	return &counted{Kernel: n, of: k}, nil
}

type counted struct {
	cove.Kernel

	of *slowKernels
}

func (c *counted) Close(ctx context.Context) error {
	c.of.alive.Add(-1)
	return c.Kernel.Close(ctx)
}

// TestContextClosedWhileItStarts: an interpreter that comes up after its context was
// closed is ended, and neither its caller nor one who waited gets it.
func TestContextClosedWhileItStarts(t *testing.T) {
	k := &slowKernels{asked: make(chan struct{}), let: make(chan struct{})}
	p := openEngine(t, func(c *engine.Config) { c.Kernels = map[string]cove.Kernels{"": k} }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	in := p.Contexts(s.ID)
	if _, err := in.Open(t.Context(), cove.ContextSpec{Name: "c", Language: "calc"}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() {
			_, err := in.Run(context.WithoutCancel(t.Context()), cove.CodeRequest{Context: "c", Code: "1"})
			ended <- err
		}()
	}
	<-k.asked
	if err := in.Close(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	close(k.let)
	for range cap(ended) {
		if err := <-ended; cove.CodeOf(err) != cove.NotFound {
			t.Errorf("code for a closed context is %v", err)
		}
	}
	if n := k.alive.Load(); n != 0 {
		t.Errorf("%d interpreters are left", n)
	}
}

// TestContextIsFresh: an answer says whether earlier ones are remembered.
func TestContextIsFresh(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	s := mustOpen(t, e.As(boss), cove.Spec{})
	fresh := func(e *engine.Engine, code string) bool {
		t.Helper()
		r, err := e.As(boss).Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: code})
		if err != nil {
			t.Fatal(err)
		}
		return r.Fresh
	}
	if !fresh(e, "x = 1") || fresh(e, "x") {
		t.Error("the first code has a fresh interpreter, and the second has not")
	}
	if err := e.As(boss).Contexts(s.ID).Restart(t.Context(), "calc"); err != nil {
		t.Fatal(err)
	}
	if !fresh(e, "1") || fresh(e, "die") || !fresh(e, "1") {
		t.Error("after a restart and after its death an interpreter is fresh")
	}
	w.shut(e, w.provider)
	e = w.open()
	if !fresh(e, "1") {
		t.Error("after a restart of the engine an interpreter is fresh")
	}
}

// TestContextAlias: a language is one, whatever it is called.
func TestContextAlias(t *testing.T) {
	p := openEngine(t, func(c *engine.Config) {
		c.Kernels = map[string]cove.Kernels{"": fake.Kernels{Names: []string{"python"}}}
	}).As(boss)
	in := p.Contexts(mustOpen(t, p, cove.Spec{}).ID)
	for i, name := range []string{"py", "python", "Python3"} {
		r, err := in.Run(t.Context(), cove.CodeRequest{Language: name, Code: "x = 1"})
		if err != nil || r.Context != "python" || r.Fresh != (i == 0) {
			t.Errorf("%s runs in %+v, %v", name, r, err)
		}
	}
	c, err := in.Open(t.Context(), cove.ContextSpec{Name: "mine", Language: "py"})
	if err != nil || c.Language != "python" {
		t.Errorf("opened %+v, %v", c, err)
	}
}

// boasts are interpreters that say they took more than there is.
type boasts struct{ fake.Kernels }

func (b boasts) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	k, err := b.Kernels.Open(ctx, in, spec)
	return boaster{k}, err
}

type boaster struct{ cove.Kernel }

func (b boaster) Run(ctx context.Context, run cove.KernelRun) (*cove.CodeResult, error) {
	r, err := b.Kernel.Run(ctx, run)
	if err == nil {
		r.Wall, r.CPU = time.Second, time.Hour
	}
	return r, err
}

// TestContextsAreBilledWhatTheyCouldTake: code can make its interpreter say anything.
func TestContextsAreBilledWhatTheyCouldTake(t *testing.T) {
	p := openEngine(t, func(c *engine.Config) { c.Kernels = map[string]cove.Kernels{"": boasts{}} }).As(boss)
	s := mustOpen(t, p, cove.Spec{Resources: cove.Resources{CPUs: 2}})
	r, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: "1"})
	if err != nil || r.CPU < 2*time.Second || r.CPU > 3*time.Second {
		t.Fatalf("it took %+v, %v", r, err)
	}
}

// TestContextOfASlowCaller: a caller who does not take what his code writes holds
// nobody up for longer than the code may run.
func TestContextOfASlowCaller(t *testing.T) {
	p := openEngine(t).As(boss)
	in := p.Contexts(mustOpen(t, p, cove.Spec{}).ID)
	hears, free, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	begun := sync.OnceFunc(func() { close(hears) })
	go func() {
		_, err := in.Run(context.WithoutCancel(t.Context()), cove.CodeRequest{
			Language: "calc", Code: strings.Repeat("print(1)\n", 100), Limits: cove.Limits{Wall: 50 * time.Millisecond},
			OnOutput: func(cove.Chunk) { begun(); <-free },
		})
		ended <- err
	}()
	<-hears
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := in.Run(ctx, cove.CodeRequest{Language: "calc", Code: "1"}); err != nil {
		t.Error(err)
	}
	close(free)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// heldKernels start interpreters that look, when they are closed, whether their sandbox
// is there.
type heldKernels struct {
	fake.Kernels

	closed chan error // gets one for each, what the sandbox says
}

func (k heldKernels) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	n, err := k.Kernels.Open(ctx, in, spec)
	return &heldKernel{n, in, k}, err
}

type heldKernel struct {
	cove.Kernel

	in cove.Starter
	of heldKernels
}

func (k *heldKernel) Close(ctx context.Context) error {
	_, err := k.in.Start(ctx, cove.Command{Argv: []string{"true"}})
	k.of.closed <- err
	return k.Kernel.Close(ctx)
}

// TestContextsEndWithAPausedSession: a paused sandbox answers nothing, so its interpreters
// are not asked to end before it does.
func TestContextsEndWithAPausedSession(t *testing.T) {
	k := heldKernels{closed: make(chan error, 1)}
	p := openEngine(t, func(c *engine.Config) { c.Kernels = map[string]cove.Kernels{"": k} }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	if _, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: "1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Snapshots().Pause(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := <-k.closed; cove.CodeOf(err) != cove.NotFound {
		t.Errorf("its sandbox says %v", err)
	}
}
