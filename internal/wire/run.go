package wire

import (
	"encoding/json"
	"time"

	"github.com/cove-sandbox/cove"
)

// RunRequest is one question to data.
type RunRequest struct {
	DatasetID      string         `json:"dataset_id,omitempty" jsonschema:"whose tables are meant where a name says no dataset"`
	Files          []cove.RunFile `json:"files,omitempty" jsonschema:"of the dataset or of the session; left out, all of the dataset"`
	QueryType      cove.QueryType `json:"query_type" jsonschema:"sql or python"`
	SQL            string         `json:"sql,omitempty"`
	PythonCode     string         `json:"python_code,omitempty"`
	TimeoutSeconds *float64       `json:"timeout_seconds,omitempty" jsonschema:"1 to 60; left out, 10"`
	MaxRows        *int           `json:"max_rows,omitempty" jsonschema:"1 to 1000; left out, 200"`
	MaxOutputBytes *int64         `json:"max_output_bytes,omitempty" jsonschema:"1025 to 1000000; left out, 65536"`
	SessionID      cove.ID        `json:"session_id,omitempty" jsonschema:"the session to run in; left out, a place of the platform's own"`
	SaveAs         string         `json:"save_as,omitempty" jsonschema:"hand the rows of SQL to the session's Python as a frame of this name"`
	Provider       string         `json:"provider,omitempty" jsonschema:"left out, that of the settings"`
	Flavor         string         `json:"flavor,omitempty" jsonschema:"left out, that of the settings"`
	ThreadID       string         `json:"thread_id,omitempty" jsonschema:"of the chat that asks"`
}

// RunRequestOf returns the form of r.
func RunRequestOf(r cove.RunRequest) RunRequest {
	return RunRequest{
		DatasetID: r.Dataset, Files: r.Files, QueryType: r.Type, SQL: r.SQL, PythonCode: r.Python,
		TimeoutSeconds: optional(r.Timeout, time.Second), MaxRows: unlessZero(r.MaxRows), MaxOutputBytes: unlessZero(int64(r.MaxOutput)),
		SessionID: r.Session, SaveAs: r.SaveAs, Provider: r.Provider, Flavor: r.Flavor, ThreadID: r.Thread,
	}
}

// Cove returns the platform's own form.
func (w RunRequest) Cove() (r cove.RunRequest, err error) {
	r = cove.RunRequest{
		Dataset: w.DatasetID, Files: w.Files, Type: w.QueryType, SQL: w.SQL, Python: w.PythonCode,
		Session: w.SessionID, SaveAs: w.SaveAs, Provider: w.Provider, Flavor: w.Flavor, Thread: w.ThreadID,
	}
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

// RunCall is a RunRequest, and whether to wait for its answer.
type RunCall struct {
	RunRequest

	Async bool `json:"async,omitempty" jsonschema:"answer at once with what is asked for later; left out, the answer waits for the run"`
}

// Run is the record of a run and, once it has finished, its answer.
type Run struct {
	RunID      cove.ID           `json:"run_id"`
	State      cove.RunState     `json:"state" jsonschema:"running, succeeded or failed"`
	Status     string            `json:"status" jsonschema:"running, success, error or timeout"`
	Columns    []string          `json:"columns"`
	Rows       []json.RawMessage `json:"rows" jsonschema:"lists of values in the order of the columns"`
	RowCount   int               `json:"row_count"`
	ExecTimeMS float64           `json:"exec_time_ms"`
	Stdout     string            `json:"stdout_trunc"`
	Stderr     string            `json:"stderr_trunc"`
	Error      *cove.RunError    `json:"error"`
	Provider   string            `json:"provider"`

	Types     []string `json:"types,omitempty" jsonschema:"of the columns, in the engine's words"`
	Truncated bool     `json:"truncated,omitempty" jsonschema:"rows or bytes were cut"`
	Loaded    bool     `json:"loaded,omitempty" jsonschema:"tables were loaded for it and not there from before"`
	InsteadOf string   `json:"instead_of,omitempty" jsonschema:"the provider that was to run it and was not ready"`

	Confined cove.Enforcement `json:"confined,omitempty" jsonschema:"how far the kernel kept Python from processes and from files other than its tables: hard, or soft where the sandbox alone stood around it"`

	Decision *cove.RunDecision `json:"decision,omitempty" jsonschema:"what policy made of it"`
	Timings  *RunTimings       `json:"timings,omitempty"`
	Request  RunRequest        `json:"request"`

	Tenant    string    `json:"tenant"`
	Owner     string    `json:"owner"`
	NodeID    string    `json:"node_id"`
	CreatedAt time.Time `json:"created_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// RunTimings is where the time of a run went.
type RunTimings struct {
	QueueMS float64 `json:"queue_ms,omitempty" jsonschema:"until a place was free"`
	JudgeMS float64 `json:"judge_ms,omitempty"`
	PlaceMS float64 `json:"place_ms,omitempty" jsonschema:"to make it"`
	LoadMS  float64 `json:"load_ms,omitempty" jsonschema:"of tables"`
	QueryMS float64 `json:"query_ms,omitempty"`
}

// RunStatus is the state of a run without its answer.
type RunStatus struct {
	RunID  cove.ID       `json:"run_id"`
	Status cove.RunState `json:"status" jsonschema:"running, succeeded, failed or not_found"`
}

// NoRun is the state of a run that is not there.
const NoRun cove.RunState = "not_found"

// unfinished is the status of a run that has no answer yet.
const unfinished = "running"

// RunOf returns the form of r.
func RunOf(r *cove.Run) Run {
	w := Run{
		RunID: r.ID, State: r.State, Status: unfinished, Columns: []string{}, Rows: []json.RawMessage{}, Request: RunRequestOf(r.Request),
		Decision: r.Decision, Timings: timingsOf(r.Timings),
		Tenant: r.Tenant, Owner: r.Owner, NodeID: r.Node, CreatedAt: r.CreatedAt, EndedAt: r.EndedAt,
	}
	if a := r.Answer; a != nil {
		w.Status, w.RowCount, w.ExecTimeMS, w.Stdout, w.Stderr = a.Status, a.RowCount, in(a.Wall, time.Millisecond), a.Stdout, a.Stderr
		w.Error, w.Provider = a.Error, a.Provider
		w.Types, w.Truncated, w.Loaded, w.InsteadOf, w.Confined = a.Types, a.Truncated, a.Loaded, a.Instead, a.Confined
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
		ID: w.RunID, Tenant: w.Tenant, Owner: w.Owner, Request: request, State: w.State, Decision: w.Decision, Timings: w.Timings.cove(),
		Node: w.NodeID, CreatedAt: w.CreatedAt, EndedAt: w.EndedAt,
	}
	if w.Status != unfinished {
		r.Answer = &cove.RunAnswer{
			Status: w.Status, Columns: w.Columns, Rows: w.Rows, RowCount: w.RowCount, Wall: of(w.ExecTimeMS, time.Millisecond),
			Stdout: w.Stdout, Stderr: w.Stderr, Error: w.Error, Provider: w.Provider,
			Types: w.Types, Truncated: w.Truncated, Loaded: w.Loaded, Instead: w.InsteadOf, Confined: w.Confined,
		}
	}
	return r, nil
}

func timingsOf(t cove.RunTimings) *RunTimings {
	if t == (cove.RunTimings{}) {
		return nil
	}
	ms := func(d time.Duration) float64 { return in(d, time.Millisecond) }
	return &RunTimings{QueueMS: ms(t.Queue), JudgeMS: ms(t.Judge), PlaceMS: ms(t.Place), LoadMS: ms(t.Load), QueryMS: ms(t.Query)}
}

func (w *RunTimings) cove() cove.RunTimings {
	if w == nil {
		return cove.RunTimings{}
	}
	d := func(n float64) time.Duration { return of(n, time.Millisecond) }
	return cove.RunTimings{Queue: d(w.QueueMS), Judge: d(w.JudgeMS), Place: d(w.PlaceMS), Load: d(w.LoadMS), Query: d(w.QueryMS)}
}

// AnalyzeRunOf returns the form of a request that asks about r and runs nothing.
func AnalyzeRunOf(r cove.RunRequest) AnalyzeRequest {
	w := AnalyzeRequest{DatasetID: r.Dataset, Files: r.Files, SessionID: r.Session, Provider: r.Provider}
	if r.Type == cove.QueryPython {
		w.PythonCode = &r.Python
	} else {
		w.SQL = &r.SQL
	}
	return w
}

// CoveRun returns the platform's own form of a request about a question to data.
func (w AnalyzeRequest) CoveRun() cove.RunRequest {
	r := cove.RunRequest{Dataset: w.DatasetID, Files: w.Files, Session: w.SessionID, Provider: w.Provider}
	if w.PythonCode != nil {
		r.Type, r.Python = cove.QueryPython, *w.PythonCode
	} else if w.SQL != nil {
		r.Type, r.SQL = cove.QuerySQL, *w.SQL
	}
	return r
}

// RunAnalysisOf returns the form of d.
func RunAnalysisOf(d *cove.RunDecision) Analysis {
	w := Analysis{
		Effect: cove.Deny, Layer: cove.Content, Refusal: d.Refusal, Programs: []AnalysisProgram{},
		Tables: d.Tables, Columns: d.Columns, Imports: d.Imports,
	}
	if d.Allowed {
		w.Effect, w.Layer = cove.Allow, ""
	}
	return w
}

// CoveRun returns the platform's own form of what was decided about a question
// to data.
func (w Analysis) CoveRun() *cove.RunDecision {
	return &cove.RunDecision{Allowed: w.Effect == cove.Allow, Refusal: w.Refusal, Tables: w.Tables, Columns: w.Columns, Imports: w.Imports}
}
