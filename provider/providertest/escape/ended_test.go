package escape

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

// TestEnded: what a program did is read from what code says of it.
func TestEnded(t *testing.T) {
	said := func(text string) *cove.CodeResult {
		r := &cove.CodeResult{Results: []cove.Rich{{"text/plain": text}}}
		r.Outcome = cove.Exited
		return r
	}
	died := said("0")
	died.Outcome, died.ExitCode, died.Error = cove.Signaled, 137, &cove.CodeError{Name: "KernelDied"}
	silent := said("0")
	silent.Results, silent.ExitCode = nil, 4
	for what, c := range map[string]struct {
		in   *cove.CodeResult
		want cove.Result
	}{
		"the end":            {said("0"), cove.Result{Outcome: cove.Exited}},
		"a failure":          {said("3"), cove.Result{Outcome: cove.Exited, ExitCode: 3}},
		"a forbidden call":   {said("-31"), cove.Result{Outcome: cove.Signaled, Signal: "SYS"}},
		"a signal":           {said("-9"), cove.Result{Outcome: cove.Signaled, ExitCode: 137}},
		"something else":     {said("'x'"), cove.Result{Outcome: cove.Killed}},
		"a dead interpreter": {died, cove.Result{Outcome: cove.Signaled, ExitCode: 137}},
		"no value":           {silent, cove.Result{Outcome: cove.Exited, ExitCode: 4}},
	} {
		if got := ended(c.in); got != c.want {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}
