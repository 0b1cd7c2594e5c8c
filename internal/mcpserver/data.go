package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
)

type sqlIn struct {
	SQL     string `json:"sql" jsonschema:"one SELECT"`
	Dataset string `json:"dataset_id,omitempty" jsonschema:"whose tables can be named without the dataset; not needed where they are called dataset.table"`
	MaxRows int    `json:"max_rows,omitempty" jsonschema:"the most rows to return, up to 1000; left out, 200"`
}

type sqlOut struct {
	RunID     string            `json:"run_id"`
	Status    string            `json:"status" jsonschema:"success, error or timeout"`
	Columns   []string          `json:"columns"`
	Types     []string          `json:"types,omitempty"`
	Rows      []json.RawMessage `json:"rows" jsonschema:"a list of values each, in the order of the columns"`
	RowCount  int               `json:"row_count"`
	Truncated bool              `json:"truncated" jsonschema:"not all rows are shown"`
	TookMS    float64           `json:"exec_time_ms"`
	Problem   *cove.RunError    `json:"problem,omitempty" jsonschema:"why there is no result, with the rule and the place where policy refused"`
}

func runSQL(ctx context.Context, c *call, in sqlIn) (answer, error) {
	watch := c.watch(ctx)
	defer watch.stop()
	run, err := c.ask(ctx, cove.RunRequest{Type: cove.QuerySQL, SQL: in.SQL, Dataset: in.Dataset, MaxRows: in.MaxRows})
	if err != nil {
		return answer{}, err
	}
	a := run.Answer
	out := sqlOut{
		RunID: string(run.ID), Status: a.Status, Columns: append([]string{}, a.Columns...), Types: a.Types,
		Rows: append([]json.RawMessage{}, a.Rows...), RowCount: a.RowCount, Truncated: a.Truncated,
		TookMS: float64(a.Wall.Microseconds()) / 1e3, Problem: a.Error,
	}
	if a.Error != nil {
		return c.refused(out, *a.Error), nil
	}
	head := len(inJSON(out.Columns)) + len(inJSON(out.Types))
	if head > c.face.room() {
		return answer{}, cove.Errorf(cove.Invalid, "the result has %d columns, whose names alone do not fit into an answer", len(out.Columns)).Remedy("select fewer columns")
	}
	if n := within(c.face.room()-head, out.Rows); n < len(out.Rows) {
		out.Rows, out.Truncated = out.Rows[:n], true
	}
	return answer{value: out}, nil
}

// ask asks data, and takes the question back when nobody waits for the answer.
func (c *call) ask(ctx context.Context, req cove.RunRequest) (*cove.Run, error) {
	run, err := c.platform.Runs().Submit(ctx, req)
	if err != nil {
		return nil, err
	}
	run, err = c.waitFor(ctx, run)
	if err == nil && run.Answer == nil {
		err = cove.Errorf(cove.Internal, "a run that has ended has no answer")
	}
	return run, err
}

func (c *call) waitFor(ctx context.Context, run *cove.Run) (*cove.Run, error) {
	done, err := c.platform.Runs().Wait(ctx, run.ID)
	if ctx.Err() != nil {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
		defer cancel()
		_ = c.platform.Runs().Delete(tidy, run.ID) // its own time ends it otherwise
		return nil, context.Cause(ctx)
	}
	return done, err
}

// refused is the answer about a question that has none.
func (c *call) refused(out sqlOut, why cove.RunError) answer {
	out.Columns, out.Types, out.Rows = []string{}, nil, []json.RawMessage{}
	parts := []*string{&why.Message}
	if why.Refusal != nil {
		why.Refusal = new(*why.Refusal)
		parts = append(parts, &why.Refusal.Reason, &why.Refusal.Word)
	}
	fit(c.face.room(), parts...)
	out.Problem = &why
	return answer{value: out, show: []mcp.Content{text(fmt.Sprintf("%s: %s", why.Type, why.Message))}, failed: true}
}
