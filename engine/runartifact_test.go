package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// warder is the fake's runner with a policy: what begins with no is refused.
type warder struct{ fake.Runner }

func (r warder) Run(ctx context.Context, host cove.RunHost, q cove.RunQuestion) (*cove.RunAnswer, *cove.RunDecision, error) {
	if q.Request.Python != "no" {
		return r.Runner.Run(ctx, host, q)
	}
	why := &cove.Refusal{Rule: "py.no", Reason: "no"}
	a := &cove.RunAnswer{Status: "error", Error: &cove.RunError{Type: cove.RunPythonPolicy, Message: "no", Refusal: why}}
	return a, &cove.RunDecision{Refusal: why}, nil
}

// TestPythonRunsAreHandedToTheArtifacts, as they went; SQL is not, and who cannot
// keep one does not change the answer.
func TestPythonRunsAreHandedToTheArtifacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &shelf{broken: errors.New("no disk")}
		w := newWorld(t)
		e, err := w.tryOpen(func(c *engine.Config) {
			c.Artifacts, c.Runners = kept, map[string]cove.Runner{"": warder{}}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.shut(e, w.provider)
		p := e.As(boss)
		answer(t, p, submit(t, p, "fail"))
		for _, code := range []string{"fine", "fail", "hang", "no"} {
			run, err := p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QueryPython, Python: code})
			if err != nil {
				t.Fatal(err)
			}
			answer(t, p, run.ID)
		}
		want := map[string]cove.Outcome{"fine": cove.Exited, "fail": cove.Exited, "hang": cove.TimedOut, "no": cove.Blocked}
		if len(kept.put) != len(want) {
			t.Fatalf("%d artifacts", len(kept.put))
		}
		for _, a := range kept.put {
			if a.Language != "python" || a.Result.Outcome != want[a.Code] || (a.Result.Err() == nil) != (a.Code == "fine") {
				t.Errorf("%s: %+v", a.Code, a.Result)
			}
		}
		refusals := 0
		for ev, err := range w.journal.Events(t.Context(), cove.EventFilter{Kind: cove.RunEnded}) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Effect == cove.Deny && ev.Rule == "py.no" {
				refusals++
			}
		}
		if refusals != 1 {
			t.Errorf("the journal has %d refusals", refusals)
		}
	})
}
