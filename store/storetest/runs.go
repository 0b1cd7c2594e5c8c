package storetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/cove-sandbox/cove"
)

var runCases = []testCase{
	{"RoundTrip", runRoundTrip},
	{"State", runState},
	{"Output", runOutput},
}

func runRoundTrip(t *testing.T, s cove.Store) {
	in, want := fullRun("a"), fullRun("a")
	ok(t, s.PutRun(t.Context(), in))
	spoil := func(r *cove.Run) {
		r.Request.Files[0].Name = "spoiled"
		r.Answer.Columns[0], r.Answer.Rows[0], r.Answer.Error.Type = "spoiled", json.RawMessage("0"), "spoiled"
	}
	spoil(in)
	for range 2 {
		got, err := s.GetRun(t.Context(), "a")
		ok(t, err)
		same(t, got, want)
		spoil(got)
		for _, listed := range all(t, s.Runs(t.Context(), "")) {
			same(t, listed, want)
			spoil(listed)
		}
	}
	fails(t, s.PutRun(t.Context(), fullRun("")), cove.Invalid)
	bad := fullRun("a")
	bad.Answer.Rows = []json.RawMessage{json.RawMessage("{not json")}
	fails(t, s.PutRun(t.Context(), bad), cove.Invalid)
	for range 2 {
		ok(t, s.DeleteRun(t.Context(), "a"))
	}
	_, err := s.GetRun(t.Context(), "a")
	fails(t, err, cove.NotFound)
	same(t, len(all(t, s.Runs(t.Context(), ""))), 0)
}

func runState(t *testing.T, s cove.Store) {
	const n = 150
	states := []cove.RunState{cove.RunRunning, cove.RunSucceeded, cove.RunFailed}
	for i := n - 1; i >= 0; i-- {
		ok(t, s.PutRun(t.Context(), &cove.Run{ID: cove.ID(fmt.Sprintf("r%03d", i)), State: states[i%3]}))
	}
	count := func(state cove.RunState) int {
		last, n := cove.ID(""), 0
		for _, r := range all(t, s.Runs(t.Context(), state)) {
			if r.ID <= last || state != "" && r.State != state {
				t.Fatalf("run %s in state %s came after %s in the list of %q", r.ID, r.State, last, state)
			}
			last = r.ID
			n++
		}
		return n
	}
	same(t, count(cove.RunRunning), n/3)
	same(t, count(""), n)
	same(t, count("unknown"), 0)
	ok(t, s.PutRun(t.Context(), &cove.Run{ID: "r000", State: cove.RunSucceeded}))
	same(t, count(cove.RunRunning), n/3-1)
	same(t, count(cove.RunSucceeded), n/3+1)
}

// runOutput keeps what programs write, which can be anything.
func runOutput(t *testing.T, s cove.Store) {
	r := fullRun("a")
	r.Answer.Stdout, r.Answer.Stderr = "a\xff\xfeb\x00\x1b[0m", "\xed\xa0\x80é"
	ok(t, s.PutRun(t.Context(), r))
	got, err := s.GetRun(t.Context(), "a")
	ok(t, err)
	same(t, got.Answer.Stdout, "a\ufffd\ufffdb\x00\x1b[0m")
	same(t, got.Answer.Stderr, "\ufffd\ufffd\ufffdé")
}
