package engine_test

import (
	"context"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// snakes are the fake's interpreters under Python's name.
type snakes struct{ fake.Kernels }

func (snakes) Languages() []string { return []string{"python"} }

func (s snakes) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	spec.Language = "calc"
	return s.Kernels.Open(ctx, in, spec)
}

// saver answers a question by code in the session that the question names.
type saver struct {
	fake.Runner

	code string
	got  chan *cove.CodeResult
}

func (r saver) Run(ctx context.Context, host cove.RunHost, q cove.RunQuestion) (*cove.RunAnswer, *cove.RunDecision, error) {
	place, done, err := host.Place(ctx, cove.RunPlace{Session: q.Request.Session})
	if err != nil {
		return nil, nil, err
	}
	defer done(false)
	out, err := place.Code(ctx, r.code)
	if err != nil {
		return nil, nil, err
	}
	r.got <- out
	return r.Runner.Run(ctx, host, q)
}

// TestRunLeavesAVariable: what a question leaves in a session's Python, code of its
// caller finds there.
func TestRunLeavesAVariable(t *testing.T) {
	r := saver{code: "top = 40", got: make(chan *cove.CodeResult, 1)}
	p := openEngine(t, func(c *engine.Config) {
		c.Kernels = map[string]cove.Kernels{"": snakes{}}
		c.Runners = map[string]cove.Runner{"": r}
	}).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	run, err := p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 40", Session: s.ID, SaveAs: "top"})
	if err != nil {
		t.Fatal(err)
	}
	if run, err = p.Runs().Wait(t.Context(), run.ID); err != nil || run.State != cove.RunSucceeded {
		t.Fatalf("got %+v, %v", run, err)
	}
	if out := <-r.got; out.Context != "python" || out.Session != s.ID || out.Error != nil {
		t.Errorf("the code: %+v", out)
	}
	out, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "python", Code: "top + 2"})
	if err != nil || len(out.Results) != 1 || out.Results[0]["text/plain"] != "42" || out.Fresh {
		t.Errorf("got %+v, %v", out, err)
	}
}

// TestRunWithoutPython says what is missing.
func TestRunWithoutPython(t *testing.T) {
	r := saver{code: "top = 1", got: make(chan *cove.CodeResult, 1)}
	p := openEngine(t, func(c *engine.Config) { c.Runners = map[string]cove.Runner{"": r} }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	run, err := p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1", Session: s.ID, SaveAs: "top"})
	if err != nil {
		t.Fatal(err)
	}
	if run, err = p.Runs().Wait(t.Context(), run.ID); err != nil || run.State != cove.RunFailed {
		t.Errorf("got %+v, %v", run, err)
	}
}
