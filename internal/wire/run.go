package wire

import (
	"encoding/json"
	"time"

	"github.com/cove-sandbox/cove"
)

// RunRequest is one question to data.
type RunRequest struct {
	DatasetID      string         `json:"dataset_id,omitempty"`
	Files          []cove.RunFile `json:"files,omitempty"`
	QueryType      cove.QueryType `json:"query_type" jsonschema:"sql or python"`
	SQL            string         `json:"sql,omitempty"`
	PythonCode     string         `json:"python_code,omitempty"`
	TimeoutSeconds *float64       `json:"timeout_seconds,omitempty" jsonschema:"1 to 60; left out, 10"`
	MaxRows        *int           `json:"max_rows,omitempty" jsonschema:"1 to 1000; left out, 200"`
	MaxOutputBytes *int64         `json:"max_output_bytes,omitempty" jsonschema:"1025 to 1000000; left out, 65536"`
}

// RunRequestOf returns the form of r.
func RunRequestOf(r cove.RunRequest) RunRequest {
	return RunRequest{
		DatasetID: r.Dataset, Files: r.Files, QueryType: r.Type, SQL: r.SQL, PythonCode: r.Python,
		TimeoutSeconds: optional(r.Timeout, time.Second), MaxRows: unlessZero(r.MaxRows), MaxOutputBytes: unlessZero(int64(r.MaxOutput)),
	}
}

// Cove returns the platform's own form.
func (w RunRequest) Cove() (r cove.RunRequest, err error) {
	r = cove.RunRequest{Dataset: w.DatasetID, Files: w.Files, Type: w.QueryType, SQL: w.SQL, Python: w.PythonCode}
	if r.Timeout, err = span("timeout_seconds", w.TimeoutSeconds, time.Second); err != nil {
		return r, err
	}
	if r.MaxRows, err = above("max_rows", w.MaxRows); err != nil {
		return r, err
	}
	most, err := above("max_output_bytes", w.MaxOutputBytes)
	r.MaxOutput = cove.Bytes(most)
	return r, err
}

// Run is the record of a run and, once it has finished, its answer.
type Run struct {
	RunID      cove.ID           `json:"run_id"`
	State      cove.RunState     `json:"state" jsonschema:"running, succeeded or failed"`
	Status     string            `json:"status" jsonschema:"running, success, error or timeout"`
	Columns    []string          `json:"columns"`
	Rows       []json.RawMessage `json:"rows"`
	RowCount   int               `json:"row_count"`
	ExecTimeMS float64           `json:"exec_time_ms"`
	Stdout     string            `json:"stdout_trunc"`
	Stderr     string            `json:"stderr_trunc"`
	Error      *cove.RunError    `json:"error"`
	Provider   string            `json:"provider"`
	Request    RunRequest        `json:"request"`
	Tenant     string            `json:"tenant"`
	Owner      string            `json:"owner"`
	NodeID     string            `json:"node_id"`
	CreatedAt  time.Time         `json:"created_at"`
	EndedAt    time.Time         `json:"ended_at,omitzero"`
}

// RunStatus is the state of a run without its answer.
type RunStatus struct {
	RunID  cove.ID       `json:"run_id"`
	Status cove.RunState `json:"status" jsonschema:"running, succeeded or failed"`
}

// unfinished is the status of a run that has no answer yet.
const unfinished = "running"

// RunOf returns the form of r.
func RunOf(r *cove.Run) Run {
	w := Run{
		RunID: r.ID, State: r.State, Status: unfinished, Columns: []string{}, Rows: []json.RawMessage{}, Request: RunRequestOf(r.Request),
		Tenant: r.Tenant, Owner: r.Owner, NodeID: r.Node, CreatedAt: r.CreatedAt, EndedAt: r.EndedAt,
	}
	if a := r.Answer; a != nil {
		w.Status, w.RowCount, w.ExecTimeMS, w.Stdout, w.Stderr = a.Status, a.RowCount, in(a.Wall, time.Millisecond), a.Stdout, a.Stderr
		w.Error, w.Provider = a.Error, a.Provider
		w.Columns = append(w.Columns, a.Columns...)
		w.Rows = append(w.Rows, a.Rows...)
	}
	return w
}

// Cove returns the platform's own form.
func (w Run) Cove() (*cove.Run, error) {
	request, err := w.Request.Cove()
	if err != nil {
		return nil, err
	}
	r := &cove.Run{
		ID: w.RunID, Tenant: w.Tenant, Owner: w.Owner, Request: request, State: w.State,
		Node: w.NodeID, CreatedAt: w.CreatedAt, EndedAt: w.EndedAt,
	}
	if w.Status != unfinished {
		r.Answer = &cove.RunAnswer{
			Status: w.Status, Columns: w.Columns, Rows: w.Rows, RowCount: w.RowCount, Wall: of(w.ExecTimeMS, time.Millisecond),
			Stdout: w.Stdout, Stderr: w.Stderr, Error: w.Error, Provider: w.Provider,
		}
	}
	return r, nil
}
