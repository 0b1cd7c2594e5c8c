package cove

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
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
	// Analyze says what policy makes of a question, and runs nothing.
	Analyze(ctx context.Context, req RunRequest) (*RunDecision, error)
	// List yields the caller's tenant's runs by id.
	List(ctx context.Context, f RunFilter) iter.Seq2[*Run, error]
}

// RunFilter selects runs; zero fields select all.
type RunFilter struct {
	Tenant string
	Owner  string
	Thread string
	State  RunState
	Before time.Time // created before it
	After  ID        // continue after it
	Newest bool      // begin with the last one by id, and go back
	Limit  int       // 0: all
}

// Match reports whether f selects a run; After and Limit do not count.
func (f RunFilter) Match(r *Run) bool {
	return (f.Tenant == "" || f.Tenant == r.Tenant) && (f.Owner == "" || f.Owner == r.Owner) &&
		(f.Thread == "" || f.Thread == r.Request.Thread) && (f.State == "" || f.State == r.State) &&
		(f.Before.IsZero() || r.CreatedAt.Before(f.Before))
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

	// Session runs it in a session of the caller's: files may be those of its
	// workspace, and tables stay loaded as long as it lives. Otherwise the
	// platform has a place of its own for it.
	Session ID `json:"session_id,omitempty"`
	// SaveAs hands the rows of SQL to the session's Python, as a frame of this name.
	SaveAs   string `json:"save_as,omitempty"`
	Provider string `json:"provider,omitempty"`  // as in Spec
	Flavor   string `json:"flavor,omitempty"`    // as in Spec
	Thread   string `json:"thread_id,omitempty"` // of the chat that asks

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
	maxFrameName      = 64
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

// Validate reports the first field that is out of bounds, after WithDefaults. The
// detail "type" of the error is RunValidation.
func (r RunRequest) Validate() error {
	err := r.validate()
	if e, ok := errors.AsType[*Error](err); ok {
		return e.With("type", RunValidation)
	}
	return err
}

func (r RunRequest) validate() error {
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
	return r.validateNames()
}

func (r RunRequest) validateNames() error {
	for _, f := range r.Files {
		if err := validText("files.name", f.Name, maxNameLen); err != nil {
			return err
		}
		if err := validText("files.path", f.Path, maxPathLen); err != nil {
			return err
		}
	}
	for _, n := range []struct{ field, text string }{
		{"dataset_id", r.Dataset}, {"provider", r.Provider}, {"flavor", r.Flavor}, {"thread_id", r.Thread},
	} {
		if err := validText(n.field, n.text, maxNameLen); err != nil {
			return err
		}
	}
	switch {
	case r.SaveAs == "":
		return nil
	case r.Session == "" || r.Type != QuerySQL:
		return InvalidField("save_as", "is for SQL in a session: give session_id and sql")
	case !validEnvName(r.SaveAs) || len(r.SaveAs) > maxFrameName || strings.HasPrefix(r.SaveAs, "__"):
		return InvalidField("save_as", "%.60q cannot be the name of a variable; use letters, digits and _", r.SaveAs)
	}
	return nil
}

// Run is the record of a run.
type Run struct {
	ID      ID         `json:"run_id"`
	Tenant  string     `json:"tenant"`
	Owner   string     `json:"owner"`
	Request RunRequest `json:"request"`
	State   RunState   `json:"state"`
	Answer  *RunAnswer `json:"answer,omitempty"` // when it has finished

	Decision *RunDecision `json:"decision,omitempty"` // what policy made of it
	Timings  RunTimings   `json:"timings,omitzero"`

	Node      string    `json:"node"`
	CreatedAt time.Time `json:"created_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// RunDecision is what policy made of a question, and what the question names.
type RunDecision struct {
	Allowed bool     `json:"allowed"`
	Refusal *Refusal `json:"refusal,omitempty"` // why not, and where
	Tables  []string `json:"tables,omitempty"`  // dataset.table
	Columns []string `json:"columns,omitempty"` // dataset.table.column, where it says which
	Imports []string `json:"imports,omitempty"` // of Python
}

// RunTimings is where the time of a run went.
type RunTimings struct {
	Queue time.Duration `json:"queue,omitempty"` // until a place was free
	Judge time.Duration `json:"judge,omitempty"`
	Place time.Duration `json:"place,omitempty"` // to make it
	Load  time.Duration `json:"load,omitempty"`  // of tables
	Query time.Duration `json:"query,omitempty"`
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

	Types     []string `json:"types,omitempty"`      // of the columns, in the engine's words
	Truncated bool     `json:"truncated,omitempty"`  // rows or bytes were cut
	Loaded    bool     `json:"loaded,omitempty"`     // tables were loaded for it, and not there from before
	Instead   string   `json:"instead_of,omitempty"` // the provider that was to run it and was not ready
	// Confined says of Python whether the kernel kept the code from starting processes
	// and from all files but its tables and a directory to write to, or whether only the
	// sandbox stood around it.
	Confined Enforcement `json:"confined,omitempty"`
}

// RunError says why a run failed, in one of the closed set of types.
type RunError struct {
	Type    string   `json:"type"`
	Message string   `json:"message"`
	Refusal *Refusal `json:"refusal,omitempty"` // the rule and the place, where policy refused
}

// The types of RunError.
const (
	RunInvalidInput  = "INVALID_INPUT"
	RunValidation    = "VALIDATION_ERROR"
	RunSQLPolicy     = "SQL_POLICY_VIOLATION"
	RunPythonPolicy  = "PYTHON_POLICY_VIOLATION"
	RunSQLFailed     = "SQL_EXECUTION_ERROR"
	RunPythonFailed  = "PYTHON_EXECUTION_ERROR"
	RunTimeout       = "RUNNER_TIMEOUT"
	RunInternalError = "RUNNER_INTERNAL_ERROR"
	RunUnavailable   = "SANDBOX_UNAVAILABLE"
)

// RunErrorTypes returns every type of RunError.
func RunErrorTypes() []string {
	return []string{
		RunInvalidInput, RunValidation, RunSQLPolicy, RunPythonPolicy, RunSQLFailed, RunPythonFailed,
		RunTimeout, RunInternalError, RunUnavailable,
	}
}

// Runner answers questions; the engine's Runs and Datasets work on it.
type Runner interface {
	// Run answers one question in what the host lends. A question that fails is
	// an answer; an error means that the platform failed. Where nobody judged,
	// there is no decision.
	Run(ctx context.Context, host RunHost, q RunQuestion) (*RunAnswer, *RunDecision, error)
	// Describe looks into the files of a dataset, as far as the grant shows them.
	Describe(ctx context.Context, host RunHost, id string, g DataGrant) (*Dataset, error)
	// Judge says what policy makes of a question, and runs nothing.
	Judge(ctx context.Context, host RunHost, q RunQuestion) (*RunDecision, error)
}

// RunQuestion is a request and who asks.
type RunQuestion struct {
	ID      ID
	Tenant  string
	Owner   string
	Grant   DataGrant
	Request RunRequest // with all bounds
	// Timings is for the runner to fill in.
	Timings *RunTimings
}

// RunHost is what the engine lends a Runner: places, no authority.
type RunHost interface {
	// Room lends a sandbox in which no code of a caller ever runs, to read code
	// and statements in. tools are executables of ours that are to be inside.
	// done is told whether nobody should use it again.
	Room(ctx context.Context, provider string, tools ...Tool) (room RunSandbox, done func(broken bool), err error)
	// Place lends where questions run, to one at a time. A place with a key is
	// kept for a while, for the next question of the same caller with that key.
	Place(ctx context.Context, want RunPlace) (place RunSandbox, done func(broken bool), err error)
	// Kernels are the interpreters of a provider; nil if it has none.
	Kernels(provider string) Kernels
}

// RunPlace says what a place is like. Whose it is the host knows: no two callers
// share one.
type RunPlace struct {
	Key      string // "": for one question, and ended with it
	Provider string // "": the usual one
	Flavor   string
	Template string   // "": the one for data, where the provider has it
	Session  ID       // the sandbox of this session; the rest does not count
	Volumes  []Volume // read-only, of the operator's own datasets
	Tools    []Tool
}

// RunSandbox is a sandbox on loan.
type RunSandbox struct {
	Sandbox
	Provider string
	Instead  string // the provider that was asked for, where another serves
	Template string
	Memory   Bytes   // what all in it may use; 0 if nobody knows
	CPUs     float64 // 0 if nobody knows
	// Mounted reports whether volumes and tools are where they belong. Otherwise
	// the provider has no volumes, and who needs them brings them as files.
	Mounted bool
	// Keep is what the runner has in it, by its own names, for as long as it lives.
	Keep *sync.Map
	// Waited is how long it took for one to become free.
	Waited time.Duration
	// Code runs code of ours in the Python of a session, in which its callers run
	// theirs. nil: it is no session's.
	Code func(ctx context.Context, code string) (*CodeResult, error)
}

// Tool is an executable of ours in a directory of the host. Inside it is ToolPath
// and its name.
type Tool struct {
	Name string
	ID   string // changes with its content
	Dir  string
}

// Where datasets and tools are in every sandbox that has them.
const (
	DataPath = "/data"
	ToolPath = "/opt/cove"
)
