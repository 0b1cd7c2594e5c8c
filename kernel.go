package cove

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"
)

// Contexts runs code that remembers in one session: variables, imports and the
// working directory of a context stay for the next call.
type Contexts interface {
	// Run runs code in a context, making the language's default one where none
	// is named. One context runs one thing at a time, in order; too many that
	// wait are Exhausted.
	Run(ctx context.Context, req CodeRequest) (*CodeResult, error)
	Open(ctx context.Context, spec ContextSpec) (*CodeContext, error)
	List(ctx context.Context) iter.Seq2[CodeContext, error]
	// Restart forgets all; Interrupt stops what runs and forgets nothing.
	Restart(ctx context.Context, name string) error
	Interrupt(ctx context.Context, name string) error
	Close(ctx context.Context, name string) error
	// Analyze says what Python code imports and what policy makes of it, and runs
	// nothing. It needs no session: for "" the interpreter of a template looks.
	Analyze(ctx context.Context, req AnalyzeRequest) (*CodeAnalysis, error)
}

// CodeRequest is a piece of code.
type CodeRequest struct {
	Language string
	Code     string
	Context  string // "" means the language's default context
	Limits   Limits
	// Env is set for this run alone, on top of what the context has; afterwards
	// each name is again what it was.
	Env map[string]string

	OnOutput func(Chunk)
	// OnResult is called with each value when it is shown, whole, also where the
	// answer has to cut it; main says that it is that of the last expression. It is
	// called in turn with OnOutput, never at the same time.
	OnResult func(value Rich, main bool)

	// Imports asks for Python's imports to be looked at before anything runs. It
	// can only be stricter than the settings: "" leaves it to them.
	Imports ImportMode
	// Trusted skips the look at imports, for who holds ScopeTrusted. The journal
	// records it.
	Trusted bool

	// IdempotencyKey: the same key and request give the result of the same run, also
	// after a restart of the server. Code that was sent with one goes on when its caller
	// goes away.
	IdempotencyKey string
}

// Validate reports a request that no interpreter could run.
func (r CodeRequest) Validate() error {
	if r.Limits.Wall < 0 {
		return InvalidField("timeout", "%s is not a time; use a number of seconds above 0", r.Limits.Wall)
	}
	if r.Language == "" && r.Context == "" {
		return InvalidField("language", "is empty; name a language or a context")
	}
	if len(r.Code) > maxCodeBytes {
		return InvalidField("code", "is %d bytes long; the most is %d: write it to a file and run that", len(r.Code), maxCodeBytes)
	}
	if !slices.Contains(append(ImportModes(), ""), r.Imports) {
		return InvalidField("imports", "%.40q is unknown; use off, warn or block", r.Imports)
	}
	if err := (Spec{Env: r.Env}).validateMaps(); err != nil {
		return err
	}
	return validText("context_id", r.Context, maxNameLen)
}

const maxCodeBytes = 16 << 20

// CodeResult is an Execution with the values that the code showed.
type CodeResult struct {
	Execution

	Context string     `json:"context_id"`
	Results []Rich     `json:"results,omitempty"`
	Main    int        `json:"main_result,omitempty"` // which of them is that of the last expression, from 1; 0: none
	Error   *CodeError `json:"error,omitempty"`
	// Count is how many pieces of code the interpreter has run, this one included;
	// 0 where none ran it.
	Count int `json:"execution_count,omitempty"`
	// Fresh says that the interpreter was started for this call: it remembers
	// nothing of earlier ones.
	Fresh bool `json:"context_fresh,omitempty"`
	// Truncated says that values or the traceback were cut to the budget, which
	// Stdout and Stderr say for themselves.
	Truncated bool `json:"results_truncated,omitempty"`

	Template string          `json:"template,omitempty"` // of the session
	Security *SecurityReport `json:"security,omitempty"` // where imports were looked at

	Timeout time.Duration `json:"timeout,omitempty"` // the time that it had
	Budget  Bytes         `json:"budget,omitempty"`  // of each stream, and of the values, in this answer
}

// Rich is one value in all the forms it came in, by MIME type.
type Rich map[string]string

// CodeError is what the code raised.
type CodeError struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback,omitempty"`
	Line      int    `json:"line,omitempty"` // in the code, from 1; 0 where none is known
}

// ContextSpec asks for a context.
type ContextSpec struct {
	Name     string // "" means a fresh name
	Language string
	Dir      string

	IdempotencyKey string // the same key and request give the same context
}

// CodeContext describes a context.
type CodeContext struct {
	Name      string    `json:"id"`
	Language  string    `json:"language"`
	Dir       string    `json:"cwd"`
	Busy      bool      `json:"busy"`
	CreatedAt time.Time `json:"created_at"`
}

// Starter is what an interpreter can be started in: a Sandbox, or a Spare that
// nobody has claimed yet.
type Starter interface {
	Start(ctx context.Context, cmd Command) (Process, error)
}

// Kernels starts interpreters inside sandboxes; the engine's Contexts run on it.
type Kernels interface {
	Languages() []string
	// Open starts an interpreter. It outlives ctx.
	Open(ctx context.Context, in Starter, spec KernelSpec) (Kernel, error)
}

// KernelMaker is a Provider whose sandboxes need interpreters of another kind than
// programs that are started in them.
type KernelMaker interface {
	Kernels() Kernels
}

// KernelSpec asks for an interpreter.
type KernelSpec struct {
	Language string
	Dir      string            // "" means the workspace
	Env      map[string]string // on top of the sandbox's
	// Warm asks for one that belongs to nobody yet, made ready to run its first
	// code at once; it waits for Adopt in the root directory, so that it uses no
	// workspace.
	Warm bool
	// Preload are modules to import ahead. One that is not there is no error.
	Preload []string
	// Programs is as in [Command].
	Programs *Programs
	// Keep is the name under which the interpreter outlives this process, where what it
	// is opened in is a Recorder; "" for one that ends with this process.
	Keep string
}

// KernelRun is a piece of code for an interpreter. Its functions may be nil; the
// others are as in [CodeRequest].
type KernelRun struct {
	Code     string
	Env      map[string]string
	Limits   Limits
	OnOutput func(Chunk)
	OnResult func(value Rich, main bool)
	// Paused returns a channel that is closed when a session that is paused goes on, and
	// nil where it is not paused; it may be nil. Code is not stopped while it is.
	Paused func() <-chan struct{}
	// Note is kept with an interpreter that outlives this process, for the server that takes it up.
	Note []byte
}

// KernelResumer is a Kernels whose interpreters can outlive the process that opened
// them.
type KernelResumer interface {
	Kernels
	// Resume takes up an interpreter that an earlier process opened with
	// KernelSpec.Keep. again is given the Note of its last run, and returns where
	// to write its output and how long it may still take.
	Resume(ctx context.Context, in Sandbox, kept Kept, spec KernelSpec, again func(note []byte) (KernelRun, error)) (KeptKernel, error)
}

// KeptKernel is a Kernel that can outlive this process.
type KeptKernel interface {
	Kernel
	// Finish returns the result of the last run of the earlier process, as Run does,
	// and must be called before the first Run. It is ErrNotBegun where the interpreter
	// never got the code, and has the reason outcome_unknown where a part of what the
	// code wrote is lost.
	Finish(ctx context.Context) (*CodeResult, error)
	// Leave ends what this process does with the interpreter, which goes on.
	Leave()
}

// ErrLeft is why there is no result of code that goes on without this process.
var ErrLeft = errors.New("the server stops, and the code goes on")

// ErrNotBegun is why there is no result of code that was never run.
var ErrNotBegun = errors.New("the code was not begun")

// Kernel is one live interpreter. Run is never called twice at once; the other
// methods may be called at any time.
type Kernel interface {
	// Adopt makes a warm interpreter that of a context: it goes to the directory
	// and takes the environment. It is called at most once, before the first Run,
	// and only on one that was opened Warm.
	Adopt(ctx context.Context, dir string, env map[string]string) error
	// Run runs code and hands on all that it writes, in order; the engine fills in
	// the streams of the answer. An interpreter that died is a CodeResult
	// with an Error that says so; the engine then opens a fresh one for the next
	// call.
	Run(ctx context.Context, run KernelRun) (*CodeResult, error)
	Interrupt(ctx context.Context) error
	Alive() bool
	Close(ctx context.Context) error
}

// Language returns the one name of a language that has several.
func Language(word string) string {
	word = strings.ToLower(word)
	switch word {
	case "py", "python3", "ipython":
		return "python"
	case "js", "javascript", "nodejs":
		return "node"
	case "ts":
		return "typescript"
	case "sh", "shell":
		return "bash"
	}
	return word
}
