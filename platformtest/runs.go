package platformtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func runCases() []testCase {
	return []testCase{
		{"answer", runAnswer},
		{"failure", runFailure},
		{"timeout", runTimeout},
		{"waiter_leaves", runWaiterLeaves},
		{"delete", runDelete},
		{"list", runList},
		{"of_others", runOfOthers},
		{"analyze", runAnalyze},
		{"bad_requests", runBadRequests},
	}
}

func (s *suite) runs(t *testing.T) (*rig, cove.Runs, *Questions) {
	t.Helper()
	r := s.start(t, Options{})
	q := r.h.Extras().Query
	if q == nil {
		t.Skip("this platform answers no runs")
	}
	return r, r.user("acme").Runs(), q
}

func runAnswer(t *testing.T, s *suite) {
	r, runs, q := s.runs(t)
	run, err := runs.Submit(r.ctx, q.Good)
	r.must(err, "submit")
	if !run.ID.Valid() || run.Tenant != "acme" || run.Owner == "" || run.CreatedAt.IsZero() || run.Request.Timeout != cove.DefaultRunTimeout {
		t.Errorf("the new run is %+v", run)
	}
	done, err := runs.Wait(r.ctx, run.ID)
	r.must(err, "wait")
	if done.ID != run.ID || done.State != cove.RunSucceeded || done.Answer == nil || done.EndedAt.IsZero() {
		t.Fatalf("the finished run is %+v", done)
	}
	a := done.Answer
	if a.Status != "success" || a.Error != nil || len(a.Columns) == 0 || len(a.Rows) == 0 || a.RowCount != len(a.Rows) || a.Provider == "" {
		t.Errorf("the answer is %+v", a)
	}
	again, err := runs.Get(r.ctx, run.ID)
	r.must(err, "get")
	same(t, "what Get says of a finished run", again, done)
}

func runFailure(t *testing.T, s *suite) {
	r, runs, q := s.runs(t)
	run, err := runs.Submit(r.ctx, q.Bad)
	r.must(err, "submit")
	done, err := runs.Wait(r.ctx, run.ID)
	r.must(err, "wait")
	if done.State != cove.RunFailed || done.Answer == nil || done.Answer.Status != "error" || done.Answer.Error == nil || done.Answer.Error.Type == "" {
		t.Errorf("a failed run is %+v with the answer %+v", done, done.Answer)
	}
}

func runTimeout(t *testing.T, s *suite) {
	r, runs, q := s.runs(t)
	req := q.Hang
	req.Timeout = time.Second
	run, err := runs.Submit(r.ctx, req)
	r.must(err, "submit")
	if run.State != cove.RunRunning {
		t.Errorf("a run that hangs is %s", run.State)
	}
	done, err := runs.Wait(r.ctx, run.ID)
	r.must(err, "wait")
	if done.State != cove.RunFailed || done.Answer == nil || done.Answer.Status != "timeout" || done.Answer.Error == nil || done.Answer.Error.Type != cove.RunTimeout {
		t.Errorf("a run over its time is %+v with the answer %+v", done, done.Answer)
	}
}

func runWaiterLeaves(t *testing.T, s *suite) {
	r, runs, q := s.runs(t)
	run, err := runs.Submit(r.ctx, q.Hang)
	r.must(err, "submit")
	ctx, leave := context.WithCancel(r.ctx)
	leave()
	_, err = runs.Wait(ctx, run.ID)
	wantCode(t, err, cove.Canceled)
	got, err := runs.Get(r.ctx, run.ID)
	r.must(err, "get")
	if got.State != cove.RunRunning {
		t.Errorf("a run whose waiter left is %s", got.State)
	}
	r.must(runs.Delete(r.ctx, run.ID), "delete")
}

func runDelete(t *testing.T, s *suite) {
	r, runs, q := s.runs(t)
	going, err := runs.Submit(r.ctx, q.Hang)
	r.must(err, "submit")
	waiter := async(func() (*cove.Run, error) { return runs.Wait(r.ctx, going.ID) })
	done, err := runs.Submit(r.ctx, q.Good)
	r.must(err, "submit")
	_, err = runs.Wait(r.ctx, done.ID)
	r.must(err, "wait")
	for _, id := range []cove.ID{going.ID, done.ID} {
		r.must(runs.Delete(r.ctx, id), "delete")
		_, err = runs.Get(r.ctx, id)
		wantCode(t, err, cove.NotFound)
		wantCode(t, runs.Delete(r.ctx, id), cove.NotFound)
	}
	if a := receive(r, waiter, "the answer to somebody who waits for a deleted run"); a.err == nil && a.value.State != cove.RunFailed {
		t.Errorf("a waiter for a deleted run was told %+v", a.value)
	}
}

func runList(t *testing.T, s *suite) {
	r, runs, q := s.runs(t)
	var want []cove.ID
	for i, req := range []cove.RunRequest{q.Good, q.Bad, q.Good} {
		if i == 2 {
			req.Thread = "t"
		}
		run, err := runs.Submit(r.ctx, req)
		r.must(err, "submit")
		_, err = runs.Wait(r.ctx, run.ID)
		r.must(err, "wait")
		want = append(want, run.ID)
	}
	slices.Sort(want)
	listed := func(p cove.Runs, f cove.RunFilter) (got []cove.ID) {
		for _, run := range all(r, p.List(r.ctx, f)) {
			got = append(got, run.ID)
		}
		return got
	}
	same(t, "all runs", listed(runs, cove.RunFilter{}), want)
	same(t, "all runs, of whatever tenant the filter names", listed(runs, cove.RunFilter{Tenant: "globex"}), want)
	same(t, "two runs", listed(runs, cove.RunFilter{Limit: 2}), want[:2])
	same(t, "the run after them", listed(runs, cove.RunFilter{After: want[1]}), want[2:])
	back := slices.Clone(want)
	slices.Reverse(back)
	same(t, "all runs, the last one first", listed(runs, cove.RunFilter{Newest: true}), back)
	same(t, "the last two", listed(runs, cove.RunFilter{Newest: true, Limit: 2}), back[:2])
	same(t, "the one before them", listed(runs, cove.RunFilter{Newest: true, After: back[1]}), back[2:])
	same(t, "failed runs", len(listed(runs, cove.RunFilter{State: cove.RunFailed})), 1)
	same(t, "runs under way", len(listed(runs, cove.RunFilter{State: cove.RunRunning})), 0)
	same(t, "runs of a thread", len(listed(runs, cove.RunFilter{Thread: "t"})), 1)
	same(t, "runs of another tenant", len(listed(r.user("globex").Runs(), cove.RunFilter{})), 0)
	for _, run := range all(r, runs.List(r.ctx, cove.RunFilter{Limit: 1})) {
		got, err := runs.Get(r.ctx, run.ID)
		r.must(err, "get")
		same(t, "a listed run", run, got)
	}
}

// runOfOthers: a key that may not ask for everything sees no answers but those to its
// own questions, since the others may have what it must not ask for.
func runOfOthers(t *testing.T, s *suite) {
	r, runs, q := s.runs(t)
	theirs, err := runs.Submit(r.ctx, q.Good)
	r.must(err, "submit")
	_, err = runs.Wait(r.ctx, theirs.ID)
	r.must(err, "wait")
	bound := r.as(cove.Principal{
		Name: "bound", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRuns}, Limits: cove.KeyLimit{Data: cove.DataGrant{MaxRows: 1}},
	}).Runs()
	_, err = bound.Get(r.ctx, theirs.ID)
	wantCode(t, err, cove.NotFound)
	_, err = bound.Wait(r.ctx, theirs.ID)
	wantCode(t, err, cove.NotFound)
	wantCode(t, bound.Delete(r.ctx, theirs.ID), cove.NotFound)
	own, err := bound.Submit(r.ctx, q.Good)
	r.must(err, "submit")
	_, err = bound.Wait(r.ctx, own.ID)
	r.must(err, "wait")
	if seen := all(r, bound.List(r.ctx, cove.RunFilter{})); len(seen) != 1 || seen[0].ID != own.ID {
		t.Errorf("a key with bounds sees %+v, want the run %s alone", seen, own.ID)
	}
	if seen := all(r, bound.List(r.ctx, cove.RunFilter{Owner: theirs.Owner})); len(seen) != 0 {
		t.Errorf("a key with bounds sees %+v of another", seen)
	}
	if _, err := runs.Get(r.ctx, own.ID); err != nil {
		t.Errorf("a key without bounds does not see the run of one with: %v", err)
	}
}

func runAnalyze(t *testing.T, s *suite) {
	r, runs, q := s.runs(t)
	d, err := runs.Analyze(r.ctx, q.Good)
	r.must(err, "analyze")
	if !d.Allowed || d.Refusal != nil {
		t.Errorf("a good question is judged %+v", d)
	}
	d, err = runs.Analyze(r.ctx, q.Hang) // it would not come back, were it run
	r.must(err, "analyze")
	if !d.Allowed {
		t.Errorf("a question that hangs is judged %+v", d)
	}
	same(t, "runs after two questions that were only looked at", len(all(r, runs.List(r.ctx, cove.RunFilter{}))), 0)
	_, err = runs.Analyze(r.ctx, cove.RunRequest{Type: "shell"})
	wantField(t, err, cove.Invalid, "query_type")
}

func runBadRequests(t *testing.T, s *suite) {
	r, runs, q := s.runs(t)
	for field, set := range map[string]func(*cove.RunRequest){
		"query_type":       func(q *cove.RunRequest) { q.Type = "shell" },
		"sql":              func(q *cove.RunRequest) { q.Type, q.SQL, q.Python = cove.QuerySQL, "", "" },
		"timeout_seconds":  func(q *cove.RunRequest) { q.Timeout = -time.Second },
		"max_rows":         func(q *cove.RunRequest) { q.MaxRows = 5000 },
		"max_output_bytes": func(q *cove.RunRequest) { q.MaxOutput = 5 },
		"files":            func(q *cove.RunRequest) { q.Files = make([]cove.RunFile, 100) },
	} {
		req := q.Good
		set(&req)
		_, err := runs.Submit(r.ctx, req)
		wantField(t, err, cove.Invalid, field)
		if kind := detail(err, "type"); kind != cove.RunValidation {
			t.Errorf("a request with a bad %s is of the type %v", field, kind)
		}
	}
	_, err := runs.Get(r.ctx, cove.NewID())
	wantCode(t, err, cove.NotFound)
	_, err = runs.Wait(r.ctx, cove.NewID())
	wantCode(t, err, cove.NotFound)
}
