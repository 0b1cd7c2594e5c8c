package fake

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Runner answers questions without looking at data. It implements
// [cove.Runner]; the zero value is ready. The text of the question says what
// the answer is:
//
//	fail     an error of the question
//	hang     no answer before the timeout
//	broken   the platform fails: Unavailable
//	rows N   N rows with one number each, at most MaxRows of them
//	else     one row with the question itself
type Runner struct{}

var _ cove.Runner = Runner{}

// Run implements [cove.Runner].
func (Runner) Run(ctx context.Context, _ cove.RunHost, q cove.RunQuestion) (*cove.RunAnswer, *cove.RunDecision, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	a, err := reply(ctx, q.Request.WithDefaults())
	return a, &cove.RunDecision{Allowed: true}, err
}

// Judge implements [cove.Runner]: every question is allowed.
func (Runner) Judge(context.Context, cove.RunHost, cove.RunQuestion) (*cove.RunDecision, error) {
	return &cove.RunDecision{Allowed: true}, nil
}

func reply(ctx context.Context, req cove.RunRequest) (*cove.RunAnswer, error) {
	begun := time.Now()
	question := strings.TrimSpace(req.SQL + req.Python)
	a := &cove.RunAnswer{Status: "success", Columns: []string{"query"}, Rows: []json.RawMessage{}, Provider: "fake"}
	word, rest, _ := strings.Cut(question, " ")
	switch word {
	case "broken":
		return nil, cove.Errorf(cove.Unavailable, "the runner is down; try again")
	case "hang":
		if err := hang(ctx, req.Timeout); err != nil {
			return nil, err
		}
		a.Status, a.Columns = "timeout", []string{}
		a.Error = &cove.RunError{Type: cove.RunTimeout, Message: "the question took longer than " + req.Timeout.String()}
	case "fail":
		kind := cove.RunSQLFailed
		if req.Type == cove.QueryPython {
			kind = cove.RunPythonFailed
		}
		a.Status, a.Columns, a.Stderr = "error", []string{}, "it failed\n"
		a.Error = &cove.RunError{Type: kind, Message: "the question asked to fail"}
	case "rows":
		n, _ := strconv.Atoi(rest)
		a.Columns = []string{"n"}
		for i := range min(n, req.MaxRows) {
			a.Rows = append(a.Rows, json.RawMessage("["+strconv.Itoa(i+1)+"]"))
		}
	default:
		row, err := json.Marshal([]string{question})
		if err != nil {
			return nil, cove.Wrap(cove.Internal, err, "the answer cannot be written")
		}
		a.Rows = append(a.Rows, row)
	}
	a.RowCount, a.Wall = len(a.Rows), time.Since(begun)
	return a, nil
}

// hang waits for the timeout of a question.
func hang(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
