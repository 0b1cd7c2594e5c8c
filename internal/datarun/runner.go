package datarun

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/pypolicy/fact"
)

// Config is what a Runner works with.
type Config struct {
	// Datasets are what questions can be asked of. nil: there are none.
	Datasets cove.DatasetSource
	// DuckDB answers SQL, or says why nobody can. It is asked whenever somebody is
	// needed, and must be quick from the second time on.
	DuckDB func() (*duckdb.Driver, error)
	// Python looks into code, in sandboxes that run none.
	Python Looker
}

// Looker tells what stands in Python code.
type Looker interface {
	Facts(ctx context.Context, in cove.Starter, code string) (*fact.Report, error)
}

// Runner implements [cove.Runner]. Its methods are safe for concurrent use.
type Runner struct {
	cfg  Config
	seen *described
}

var _ cove.Runner = (*Runner)(nil)

// New returns a Runner, which has nothing to close.
func New(cfg Config) *Runner { return &Runner{cfg: cfg, seen: newDescribed()} }

// Run implements [cove.Runner].
func (r *Runner) Run(ctx context.Context, host cove.RunHost, q cove.RunQuestion) (*cove.RunAnswer, *cove.RunDecision, error) {
	if q.Timings == nil {
		q.Timings = &cove.RunTimings{}
	}
	if most := q.Grant.MaxRows; most > 0 {
		q.Request.MaxRows = min(q.Request.MaxRows, most)
	}
	t := &task{Runner: r, host: host, q: q, provider: q.Request.Provider}
	t.answer = &cove.RunAnswer{Columns: []string{}, Rows: []json.RawMessage{}}
	err := t.run(ctx)
	if ctx.Err() != nil && err != nil {
		return nil, t.decision, err // whoever ended it knows why
	}
	if err != nil {
		t.answer.Columns, t.answer.Rows = []string{}, []json.RawMessage{}
		t.answer.Error = faultOf(err)
		t.answer.Truncated = false
	}
	t.finish()
	return t.answer, t.decision, nil
}

// task is one question under way.
type task struct {
	*Runner

	host     cove.RunHost
	q        cove.RunQuestion
	provider string // that serves, as far as it is known
	instead  string
	decision *cove.RunDecision
	answer   *cove.RunAnswer
}

func (t *task) run(ctx context.Context) error {
	if t.q.Request.Type == cove.QueryPython {
		return t.python(ctx)
	}
	return t.sql(ctx)
}

// finish fills in what every answer says.
func (t *task) finish() {
	a := t.answer
	a.RowCount, a.Provider, a.Instead = len(a.Rows), t.provider, t.instead
	if a.Wall == 0 {
		a.Wall = t.q.Timings.Query
	}
	switch {
	case a.Error == nil:
		a.Status = "success"
	case a.Error.Type == cove.RunTimeout:
		a.Status = "timeout"
	default:
		a.Status = "error"
	}
}

// served takes down who serves the question.
func (t *task) served(by cove.RunSandbox) { t.provider, t.instead = by.Provider, by.Instead }

// since adds the time from a moment on.
func since(sum *time.Duration, began time.Time) { *sum += time.Since(began) }
