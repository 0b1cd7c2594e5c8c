package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// mortals makes sandboxes that can be made to die.
type mortals struct {
	cove.Provider

	last *mortal
}

type mortal struct {
	cove.Sandbox

	died  chan struct{}
	cause error
}

func (m *mortal) Died() <-chan struct{} { return m.died }

func (p *mortals) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	s, err := p.Provider.Create(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	p.last = &mortal{Sandbox: s, died: make(chan struct{})}
	return p.last, nil
}

// TestSandboxThatDied: its session is gone, says why, and makes room for a new
// one of the same user and thread.
func TestSandboxThatDied(t *testing.T) {
	w := newWorld(t)
	p := &mortals{}
	boss := w.open(func(c *engine.Config) {
		p.Provider = c.Providers[0]
		c.Providers = []cove.Provider{p}
	}).As(boss)
	spec := cove.Spec{User: "ada", Thread: "t"}
	first := mustOpen(t, boss, spec)
	if again := mustOpen(t, boss, spec); again.ID != first.ID {
		t.Fatalf("a live session is not found: %s and %s", first.ID, again.ID)
	}
	close(p.last.died)
	_, err := boss.Processes(first.ID).Exec(t.Context(), cove.ExecRequest{Line: "echo hi"})
	wantCode(t, err, cove.NotFound, cove.ReasonNodeLost)
	for s := range boss.Sessions().List(t.Context(), cove.SessionFilter{}) {
		t.Errorf("a dead session is listed: %+v", s)
	}
	second := mustOpen(t, boss, spec)
	if second.ID == first.ID {
		t.Error("a dead session was handed out")
	}
	if got := sh(t, boss, second.ID, "echo hi"); got != "hi\n" {
		t.Errorf("got %q", got)
	}
	_, err = boss.Sessions().Get(t.Context(), first.ID)
	wantCode(t, err, cove.NotFound, cove.ReasonNodeLost)

	close(p.last.died)
	control(t, boss, "expiry", cove.RunTask)
	if n := held(t, w.provider); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// TestRoomOfTheDead: a session whose sandbox died takes nobody's room.
func TestRoomOfTheDead(t *testing.T) {
	w := newWorld(t)
	p := &mortals{}
	boss := w.open(func(c *engine.Config) {
		p.Provider = c.Providers[0]
		c.Providers, c.MaxSessions, c.Evict = []cove.Provider{p}, 1, false
	}).As(boss)
	mustOpen(t, boss, cove.Spec{})
	_, err := boss.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Exhausted, cove.ReasonCapacity)
	close(p.last.died)
	mustOpen(t, boss, cove.Spec{})
}

// leaky makes sandboxes that are lost while the first program runs in them.
type leaky struct {
	cove.Provider

	reason string
}

func (p *leaky) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	s, err := p.Provider.Create(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	return &leakySandbox{s, p.reason}, nil
}

type leakySandbox struct {
	cove.Sandbox

	reason string
}

func (s *leakySandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	proc, err := s.Sandbox.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return leakyProcess{proc, s.reason}, nil
}

type leakyProcess struct {
	cove.Process

	reason string
}

func (p leakyProcess) Wait(ctx context.Context) (cove.Result, error) {
	if _, err := p.Process.Wait(ctx); err != nil {
		return cove.Result{}, err
	}
	return cove.Result{}, cove.Errorf(cove.NotFound, "the machine is gone").Reason(p.reason)
}

// TestSandboxLostWhileItRuns: nobody is told that nothing ran, whatever the provider
// says, since that would have the program run again.
func TestSandboxLostWhileItRuns(t *testing.T) {
	for _, reason := range []string{cove.ReasonNodeLost, cove.ReasonKernelMemory} {
		w := newWorld(t)
		p := w.open(func(c *engine.Config) { c.Providers = []cove.Provider{&leaky{c.Providers[0], reason}} }).As(boss)
		s := mustOpen(t, p, cove.Spec{})
		_, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
		wantCode(t, err, cove.Conflict, reason)
		if cove.RemedyOf(err) == "" {
			t.Errorf("the error has no remedy: %v", err)
		}
	}
}

// Cause implements [cove.Explainer].
func (m *mortal) Cause() error { return m.cause }

// TestSandboxThatHeldTooMuch: its session says what it was ended for, and so does the
// journal, with the numbers.
func TestSandboxThatHeldTooMuch(t *testing.T) {
	w := newWorld(t)
	p := &mortals{}
	boss := w.open(func(c *engine.Config) {
		p.Provider = c.Providers[0]
		c.Providers = []cove.Provider{p}
	}).As(boss)
	first := mustOpen(t, boss, cove.Spec{})
	const said = "the sandbox was ended: it held 16441 file locks, and the most is 16384"
	p.last.cause = cove.Errorf(cove.NotFound, said).Reason(cove.ReasonKernelMemory)
	close(p.last.died)
	control(t, boss, "expiry", cove.RunTask)
	_, err := boss.Sessions().Get(t.Context(), first.ID)
	wantCode(t, err, cove.NotFound, cove.ReasonKernelMemory)
	if !strings.Contains(cove.MessageOf(err), "locks") || cove.RemedyOf(err) == "" {
		t.Errorf("the error has no reason: %v", err)
	}
	for ev, err := range boss.Admin().Events(t.Context(), cove.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == "session.overrun" && ev.Session == first.ID && strings.Contains(string(ev.Data), said) {
			return
		}
	}
	t.Error("the journal does not say what it held")
}
