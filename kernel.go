package cove

import (
	"context"
	"iter"
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
}

// CodeRequest is a piece of code.
type CodeRequest struct {
	Language string
	Code     string
	Context  string // "" means the language's default context
	Limits   Limits
	OnOutput func(Chunk)
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
	return validText("context_id", r.Context, maxNameLen)
}

const maxCodeBytes = 16 << 20

// CodeResult is an Execution with the values that the code showed.
type CodeResult struct {
	Execution

	Context string     `json:"context_id"`
	Results []Rich     `json:"results,omitempty"`
	Error   *CodeError `json:"error,omitempty"`
}

// Rich is one value in all the forms it came in, by MIME type.
type Rich map[string]string

// CodeError is what the code raised.
type CodeError struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback,omitempty"`
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

// Kernels starts interpreters inside sandboxes; the engine's Contexts run on it.
type Kernels interface {
	Languages() []string
	Open(ctx context.Context, sandbox Sandbox, spec ContextSpec) (Kernel, error)
}

// Kernel is one live interpreter. Run is never called twice at once; the other
// methods may be called at any time.
type Kernel interface {
	// Run runs code and hands all that it writes to out, in order; the engine
	// fills in the streams of the answer. An interpreter that died is a CodeResult
	// with an Error that says so; the engine then opens a fresh one for the next
	// call.
	Run(ctx context.Context, code string, limits Limits, out func(Chunk)) (*CodeResult, error)
	Interrupt(ctx context.Context) error
	Alive() bool
	Close(ctx context.Context) error
}
