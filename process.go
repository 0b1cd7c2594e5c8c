package cove

import (
	"context"
	"io"
	"iter"
	"time"
)

// PID names a process of a session. It is Cove's own small number, not the
// kernel's, and is never used twice within a session.
type PID int

// Processes runs programs in one session. Foreground or background, a program
// passes policy first; one that policy refuses is an Execution with outcome
// Blocked, not an error, so that an agent can read why and go on.
type Processes interface {
	// Exec runs a program to its end. When ctx ends, so does the program.
	Exec(ctx context.Context, req ExecRequest) (*Execution, error)
	// Start runs a program in the background. A blocked one has ended at once.
	Start(ctx context.Context, req ExecRequest) (*ProcessInfo, error)
	// List yields the background programs of the session, ended ones included.
	List(ctx context.Context) iter.Seq2[ProcessInfo, error]
	// Connect yields the output of a background program from a byte offset on,
	// and goes on until the program has ended or ctx does. Any number of callers
	// may follow one program.
	Connect(ctx context.Context, pid PID, offset int64) iter.Seq2[Chunk, error]
	// Wait returns when a background program has ended.
	Wait(ctx context.Context, pid PID) (*Execution, error)
	// Input writes to a program's standard input, and then closes it if eof.
	Input(ctx context.Context, pid PID, data []byte, eof bool) error
	Signal(ctx context.Context, pid PID, sig Signal) error
	Resize(ctx context.Context, pid PID, size WindowSize) error
	// Output reads a part of what a program wrote, as named by Execution.OutputID.
	Output(ctx context.Context, id OutputID, r OutputRange) (*OutputPage, error)
}

// ExecRequest is a shell line or an argv, exactly one.
type ExecRequest struct {
	Line  string            // run by the sandbox's bash, or sh where there is none
	Argv  []string          // run as it is
	Dir   string            // "" means the workspace
	Env   map[string]string // on top of the session's
	Stdin io.Reader         // nil means empty; one that fails ends the program; a background program takes Input too
	TTY   *WindowSize       // a terminal, with Start
	// KeepStdin leaves a background program's input open for Input after Stdin ends.
	KeepStdin bool
	Limits    Limits
	// Tag is a word of the caller's for a background program, which List shows; at
	// most 64 bytes. A program that is waited for has none.
	Tag string
	// OnOutput is called in order with all that the program writes. It may
	// block, and then slows the program down; it returns when the call's context
	// ends. The chunk is its own.
	OnOutput func(Chunk)
	// IdempotencyKey, with Start alone: the same key and request give the same
	// program. Stdin must be in memory then.
	IdempotencyKey string
}

// Validate reports a request that no provider could run.
func (r ExecRequest) Validate() error {
	switch {
	case r.Line == "" && len(r.Argv) == 0:
		return InvalidField("command", "is empty")
	case r.Line != "" && len(r.Argv) > 0:
		return InvalidField("command", "is both a line and an argv; send one")
	case len(r.Argv) > 0 && r.Argv[0] == "":
		return InvalidField("command", "has no program name")
	case r.Limits.Wall < 0:
		return InvalidField("timeout", "%s is not a time; use a number of seconds above 0", r.Limits.Wall)
	case r.Limits.Output < 0:
		return InvalidField("max_output", "%d is negative", r.Limits.Output)
	case r.TTY != nil && (r.TTY.Cols == 0 || r.TTY.Rows == 0):
		return InvalidField("tty", "needs at least one column and one row")
	}
	return r.validateTexts()
}

// Bounds on a command: Linux takes 128 KiB in one argument and 2 MiB in all.
const (
	maxArgs     = 32 << 10
	maxArgBytes = 2 << 20
	maxTagLen   = 64
)

func (r ExecRequest) validateTexts() error {
	if len(r.Argv) > maxArgs {
		return InvalidField("command", "has %d arguments; the most is %d", len(r.Argv), maxArgs)
	}
	total := 0
	for _, text := range append([]string{r.Line}, r.Argv...) {
		total += len(text)
		if indexNUL(text) >= 0 {
			return InvalidField("command", "holds a NUL byte")
		}
	}
	if total > maxArgBytes {
		return InvalidField("command", "is %d bytes long; the most is %d: write the data to a file first", total, maxArgBytes)
	}
	if err := (Spec{Env: r.Env}).validateMaps(); err != nil {
		return err
	}
	if err := validText("tag", r.Tag, maxTagLen); err != nil {
		return err
	}
	return validText("workdir", r.Dir, maxPathLen)
}

func indexNUL(s string) int {
	for i := range len(s) {
		if s[i] == 0 {
			return i
		}
	}
	return -1
}

// Execution is a Result with what the program wrote, cut to the budget.
type Execution struct {
	Result

	PID      PID      `json:"pid,omitempty"` // of a background program
	Stdout   Output   `json:"stdout"`
	Stderr   Output   `json:"stderr"`
	OutputID OutputID `json:"output_id,omitempty"` // set when something was cut and could be kept
	// OutputLost says why output that should have been kept was not: a full disk, or
	// the tenant's bound. The program ran, and Stdout and Stderr have its head and tail.
	OutputLost string   `json:"output_lost,omitempty"`
	Refusal    *Refusal `json:"refusal,omitempty"` // set when Outcome is Blocked
	Provider   string   `json:"provider"`
	Session    ID       `json:"session_id"` // where it ran
	// Cost is an estimate, where the operator wrote down what the provider asks.
	Cost *Cost `json:"cost_estimate,omitempty"`
	// Recreated says that the session it was meant for had expired, and that it
	// ran in a new one, Session, opened by the same request: files and variables
	// may be gone. Only platforms that retry (package retry) set it.
	Recreated bool `json:"session_recreated,omitempty"`
	// Restarted says that the session had been stopped and was started again since the
	// last answer: its files are kept, variables and programs that ran are gone.
	Restarted bool `json:"session_restarted,omitempty"`
}

// Output is one stream: its head and tail where it was longer than the budget.
type Output struct {
	Data      []byte `json:"data"`
	Bytes     int64  `json:"bytes"` // all that was written
	Lines     int64  `json:"lines"` // newlines in all that was written
	Truncated bool   `json:"truncated,omitempty"`
}

// OutputID names the kept output of one program within its session.
type OutputID string

// OutputRange selects a part of kept output.
type OutputRange struct {
	Stream Stream // "" means both, in the order written
	Offset int64  // in bytes of what Stream selects
	Limit  int64  // 0 means 64 KiB; the most is 1 MiB
	Grep   string // a regular expression: only lines that match
}

// OutputPage is a part of kept output. Next is where to go on; −1 where nothing
// more is kept, which for a program that still runs means not yet.
type OutputPage struct {
	Data    []byte `json:"data"`
	Offset  int64  `json:"offset"`
	Next    int64  `json:"next"`
	Total   int64  `json:"total"`             // bytes kept of what Stream selects
	Dropped int64  `json:"dropped,omitempty"` // bytes written after the cap and not kept
}

// Stream is where a program wrote.
type Stream string

// The streams. A terminal has only Stdout.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Chunk is a piece of output as it happened. Offset counts the bytes of both
// streams before it.
type Chunk struct {
	Stream Stream `json:"stream"`
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
}

// ProcessInfo describes a background program.
type ProcessInfo struct {
	PID       PID        `json:"pid"`
	Command   string     `json:"command"`        // cut to 200 bytes
	Argv      []string   `json:"argv,omitempty"` // as it was asked for, cut to 4 KiB in all; none of a line
	Dir       string     `json:"dir,omitempty"`  // as it was asked for
	Tag       string     `json:"tag,omitempty"`
	TTY       bool       `json:"tty,omitempty"`
	Running   bool       `json:"running"`
	StartedAt time.Time  `json:"started_at"`
	OutputID  OutputID   `json:"output_id,omitempty"` // reads what it has written, also while it runs
	Result    *Execution `json:"result,omitempty"`    // when it has ended
}
