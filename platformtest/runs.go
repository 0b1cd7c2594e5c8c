package platformtest

import (
	"context"
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
	}
	_, err := runs.Get(r.ctx, cove.NewID())
	wantCode(t, err, cove.NotFound)
	_, err = runs.Wait(r.ctx, cove.NewID())
	wantCode(t, err, cove.NotFound)
}
