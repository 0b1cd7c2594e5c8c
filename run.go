package cove

import (
	"context"
	"encoding/json"
	"time"
)

// Runs are governed questions to data: SQL or Python over a dataset's files,
// answered with the same fields whatever provider ran them.
type Runs interface {
	// Submit starts a run and returns its record at once.
	Submit(ctx context.Context, req RunRequest) (*Run, error)
	// Get returns the record of a run, finished or not.
	Get(ctx context.Context, id ID) (*Run, error)
	// Wait returns the record when the run has finished.
	Wait(ctx context.Context, id ID) (*Run, error)
	// Delete ends a run that still goes on and forgets it.
	Delete(ctx context.Context, id ID) error
}

// RunRequest is one question. Zero bounds take the defaults below.
type RunRequest struct {
	Dataset   string        `json:"dataset_id,omitempty"`
	Files     []RunFile     `json:"files,omitempty"`
	Type      QueryType     `json:"query_type"`
	SQL       string        `json:"sql,omitempty"`
	Python    string        `json:"python_code,omitempty"`
	Timeout   time.Duration `json:"timeout,omitempty"`
	MaxRows   int           `json:"max_rows,omitempty"`
	MaxOutput Bytes         `json:"max_output,omitempty"`

	// IdempotencyKey: the same key and request give the same run. It is not kept.
	IdempotencyKey string `json:"-"`
}

// RunFile is a file of a dataset, and the name of its table.
type RunFile struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// QueryType is sql or python.
type QueryType string

// The kinds of question.
const (
	QuerySQL    QueryType = "sql"
	QueryPython QueryType = "python"
)

// The bounds of a run and their defaults.
const (
	DefaultRunTimeout = 10 * time.Second
	MaxRunTimeout     = 60 * time.Second
	DefaultRunRows    = 200
	MaxRunRows        = 1000
	DefaultRunOutput  = 64 * KiB
	MinRunOutput      = 1025
	MaxRunOutput      = 1000000
	maxQueryBytes     = 1 << 20
	maxRunFiles       = 64
	minRunTimeout     = time.Second
)

// WithDefaults returns r with every bound filled in.
func (r RunRequest) WithDefaults() RunRequest {
	if r.Timeout == 0 {
		r.Timeout = DefaultRunTimeout
	}
	if r.MaxRows == 0 {
		r.MaxRows = DefaultRunRows
	}
	if r.MaxOutput == 0 {
		r.MaxOutput = DefaultRunOutput
	}
	return r
}

// Validate reports the first field that is out of bounds, after WithDefaults.
func (r RunRequest) Validate() error {
	switch {
	case r.Type != QuerySQL && r.Type != QueryPython:
		return InvalidField("query_type", "%.40q is unknown; use sql or python", string(r.Type))
	case r.Type == QuerySQL && (r.SQL == "" || r.Python != ""):
		return InvalidField("sql", "a run of type sql needs sql and no python_code")
	case r.Type == QueryPython && (r.Python == "" || r.SQL != ""):
		return InvalidField("python_code", "a run of type python needs python_code and no sql")
	case len(r.SQL)+len(r.Python) > maxQueryBytes:
		return InvalidField(string(r.Type), "is longer than %d bytes", maxQueryBytes)
	case r.Timeout < minRunTimeout || r.Timeout > MaxRunTimeout:
		return InvalidField("timeout_seconds", "%s is out of range; use 1 to 60", trimFloat(r.Timeout.Seconds()))
	case r.MaxRows < 1 || r.MaxRows > MaxRunRows:
		return InvalidField("max_rows", "%d is out of range; use 1 to %d", r.MaxRows, MaxRunRows)
	case r.MaxOutput < MinRunOutput || r.MaxOutput > MaxRunOutput:
		return InvalidField("max_output_bytes", "%d is out of range; use %d to %d", int64(r.MaxOutput), MinRunOutput, MaxRunOutput)
	case len(r.Files) > maxRunFiles:
		return InvalidField("files", "has %d entries; the most is %d", len(r.Files), maxRunFiles)
	}
	return validText("dataset_id", r.Dataset, maxNameLen)
}

// Run is the record of a run.
type Run struct {
	ID        ID         `json:"run_id"`
	Tenant    string     `json:"tenant"`
	Owner     string     `json:"owner"`
	Request   RunRequest `json:"request"`
	State     RunState   `json:"state"`
	Answer    *RunAnswer `json:"answer,omitempty"` // when it has finished
	Node      string     `json:"node"`
	CreatedAt time.Time  `json:"created_at"`
	EndedAt   time.Time  `json:"ended_at,omitzero"`
}

// RunState is where a run is in its life.
type RunState string

// The life of a run.
const (
	RunRunning   RunState = "running"
	RunSucceeded RunState = "succeeded"
	RunFailed    RunState = "failed"
)

// RunAnswer is what a run gave. The fields are the same for every provider.
type RunAnswer struct {
	Status   string            `json:"status"` // success, error or timeout
	Columns  []string          `json:"columns"`
	Rows     []json.RawMessage `json:"rows"`
	RowCount int               `json:"row_count"`
	Wall     time.Duration     `json:"wall"`
	Stdout   string            `json:"stdout_trunc"`
	Stderr   string            `json:"stderr_trunc"`
	Error    *RunError         `json:"error"`
	Provider string            `json:"provider"`
}

// RunError says why a run failed, in one of the closed set of types.
type RunError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// The types of RunError that the engine itself gives.
const (
	RunTimeout       = "RUNNER_TIMEOUT"
	RunInternalError = "RUNNER_INTERNAL_ERROR"
	RunUnavailable   = "SANDBOX_UNAVAILABLE"
)

// Runner answers one question; the engine's Runs work on it. A question that
// fails is an answer; an error means that the platform failed.
type Runner interface {
	Run(ctx context.Context, req RunRequest) (*RunAnswer, error)
}
