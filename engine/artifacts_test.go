package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// shelf is a place for artifacts that remembers what it was given.
type shelf struct {
	mu     sync.Mutex
	put    []cove.Artifact
	swept  int
	broken error
}

func (s *shelf) Put(_ context.Context, a cove.Artifact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put = append(s.put, a)
	return s.broken
}

func (*shelf) Held(string) cove.Bytes { return 0 }

func (s *shelf) Sweep(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept++
	return 3, nil
}

func TestCodeIsHandedToTheArtifacts(t *testing.T) {
	kept := &shelf{}
	e := openEngine(t, func(c *engine.Config) { c.Artifacts = kept })
	p := e.As(boss)
	s := mustOpen(t, p, cove.Spec{Env: map[string]string{"TOKEN": "abc"}})
	for _, code := range []string{"x = 42", "raise E msg"} {
		if _, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: code}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "none", Code: "x"}); err == nil {
		t.Error("an unknown language runs")
	}
	if len(kept.put) != 2 || kept.swept > 0 {
		t.Fatalf("%d artifacts, %d sweeps", len(kept.put), kept.swept)
	}
	a := kept.put[1]
	if a.Session != s.ID || a.Tenant != cove.DefaultTenant || a.Language != "calc" || a.Code != "raise E msg" || a.Env["TOKEN"] != "abc" || a.At.IsZero() ||
		a.Result.Error == nil || a.Result.Template != "base" || string(a.Result.Stdout.Data) != "" {
		t.Errorf("%+v with %+v", a, a.Result)
	}
	list, err := p.Admin().ControlTask(t.Context(), "artifacts", cove.RunTask)
	i := slices.IndexFunc(list, func(s cove.TaskStatus) bool { return s.Name == "artifacts" })
	if err != nil || i < 0 || list[i].Done != 3 || kept.swept != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestRefusedCodeIsHandedToTheArtifacts: what never ran is told as completely.
func TestRefusedCodeIsHandedToTheArtifacts(t *testing.T) {
	kept := &shelf{}
	p := openEngine(t, func(c *engine.Config) { c.Artifacts = kept }).As(boss)
	s := mustOpen(t, p, cove.Spec{Policy: "agent-bash"})
	out, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "none", Code: "x"})
	if err != nil || out.Outcome != cove.Blocked || out.Template != "base" || out.Timeout != 33*time.Second || out.Budget != 20*cove.KiB {
		t.Errorf("%+v, %v", out, err)
	}
	if len(kept.put) != 1 || kept.put[0].Result != out {
		t.Errorf("%+v", kept.put)
	}
}

// TestArtifactsThatCannotBeKept: the answer is whole all the same, and the
// journal tells of it.
func TestArtifactsThatCannotBeKept(t *testing.T) {
	w := newWorld(t)
	e := w.open(func(c *engine.Config) { c.Artifacts = &shelf{broken: errors.New("disk full")} })
	p := e.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	out, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: "1 + 1"})
	if err != nil || len(out.Results) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	n := 0
	for ev, err := range w.journal.Events(t.Context(), cove.EventFilter{Kind: "artifact.failed"}) {
		if n++; err != nil || ev.Session != s.ID {
			t.Errorf("%+v, %v", ev, err)
		}
	}
	if n != 1 {
		t.Errorf("%d notes", n)
	}
}

// TestOneRunSweeps: who ends soon cannot leave it to a task.
func TestOneRunSweeps(t *testing.T) {
	kept := &shelf{}
	e := openEngine(t, func(c *engine.Config) { c.Artifacts, c.Fleeting = kept, true })
	p := e.As(boss)
	if _, err := p.Contexts(mustOpen(t, p, cove.Spec{}).ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: "1"}); err != nil {
		t.Fatal(err)
	}
	if len(kept.put) != 1 || kept.swept != 1 {
		t.Errorf("%d artifacts, %d sweeps", len(kept.put), kept.swept)
	}
}
