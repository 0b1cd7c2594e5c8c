package wire

import (
	"bytes"
	"time"

	"github.com/cove-sandbox/cove"
)

// ExecStream is the media type of an ExecRequest on one line, followed by the
// standard input as it is, up to the end of the body.
const ExecStream = "application/x-cove-exec"

// ExecRequest asks for a program to be run.
type ExecRequest struct {
	Command     Command           `json:"command" jsonschema:"a line for the shell, or a list of words run as they are"`
	Workdir     string            `json:"workdir,omitempty" jsonschema:"left out, the workspace"`
	Timeout     *float64          `json:"timeout,omitempty" jsonschema:"seconds"`
	MaxOutput   *Quantity         `json:"max_output,omitempty" jsonschema:"bytes of both streams together; then it is killed"`
	Env         map[string]string `json:"env,omitempty" jsonschema:"on top of the session's"`
	Stdin       *string           `json:"stdin,omitempty"`
	StdinBase64 []byte            `json:"stdin_base64,omitempty"`
	TTY         *cove.WindowSize  `json:"tty,omitempty" jsonschema:"a terminal, for a background program"`
	KeepStdin   bool              `json:"keep_stdin,omitempty" jsonschema:"leave the input of a background program open"`
	Tag         string            `json:"tag,omitempty" jsonschema:"a word to find a background program by"`
	Background  bool              `json:"background,omitempty" jsonschema:"answer at once with its pid"`
}

// ExecRequestOf returns the form of r with stdin as its input.
func ExecRequestOf(r cove.ExecRequest, stdin []byte) ExecRequest {
	w := ExecRequest{
		Command: Command{Line: r.Line, Argv: r.Argv}, Workdir: r.Dir, Timeout: optional(r.Limits.Wall, time.Second),
		MaxOutput: bytesQuantity(r.Limits.Output), Env: r.Env, TTY: r.TTY, KeepStdin: r.KeepStdin, Tag: r.Tag,
	}
	if len(stdin) > 0 {
		w.Stdin, w.StdinBase64 = texts(stdin)
	}
	return w
}

// Cove returns the platform's own form.
func (w ExecRequest) Cove() (cove.ExecRequest, error) {
	r := cove.ExecRequest{Line: w.Command.Line, Argv: w.Command.Argv, Dir: w.Workdir, Env: w.Env, TTY: w.TTY, KeepStdin: w.KeepStdin, Tag: w.Tag}
	var err error
	if r.Limits, err = limits(w.Timeout, w.MaxOutput); err != nil {
		return r, err
	}
	if w.Stdin != nil && len(w.StdinBase64) > 0 {
		return r, cove.InvalidField("stdin", "is there as text and in base64; send one")
	}
	if data := untexts(w.Stdin, w.StdinBase64); len(data) > 0 {
		r.Stdin = bytes.NewReader(data)
	}
	return r, nil
}

func limits(timeout *float64, output *Quantity) (l cove.Limits, err error) {
	if l.Wall, err = span("timeout", timeout, time.Second); err != nil {
		return l, err
	}
	l.Output, err = output.bytes("max_output")
	return l, err
}

// Status is how a program ended in one word, for callers that want no more.
type Status string

// The statuses.
const (
	Success   Status = "success" // it exited with 0
	Failure   Status = "error"
	TimedOut  Status = "timeout"
	IsBlocked Status = "blocked" // policy said no: it never ran
)

func statusOf(r cove.Result) Status {
	switch r.Outcome {
	case cove.Blocked:
		return IsBlocked
	case cove.TimedOut:
		return TimedOut
	case cove.Exited:
		if r.ExitCode == 0 {
			return Success
		}
	case cove.Signaled, cove.OutOfMemory, cove.OutputLimit, cove.Killed:
	}
	return Failure
}

// Execution is the answer about a program that has ended.
type Execution struct {
	ExitCode        int           `json:"exit_code" jsonschema:"128+n for a signal; -1 when timed out"`
	Status          Status        `json:"status" jsonschema:"success, error, timeout or blocked"`
	Outcome         cove.Outcome  `json:"outcome" jsonschema:"exited, signaled, timed_out, out_of_memory, output_limit, blocked or killed"`
	Signal          cove.Signal   `json:"signal,omitempty"`
	Stdout          *string       `json:"stdout,omitempty"`
	StdoutBase64    []byte        `json:"stdout_base64,omitempty" jsonschema:"in the place of stdout where that is not UTF-8"`
	Stderr          *string       `json:"stderr,omitempty"`
	StderrBase64    []byte        `json:"stderr_base64,omitempty" jsonschema:"in the place of stderr where that is not UTF-8"`
	StdoutBytes     int64         `json:"stdout_bytes" jsonschema:"all that was written"`
	StderrBytes     int64         `json:"stderr_bytes" jsonschema:"all that was written"`
	StdoutLines     int64         `json:"stdout_lines" jsonschema:"newlines in all that was written"`
	StderrLines     int64         `json:"stderr_lines" jsonschema:"newlines in all that was written"`
	Truncated       bool          `json:"truncated" jsonschema:"something was cut; output_id has the rest, and is left out where output_lost says why it was not kept"`
	StdoutTruncated bool          `json:"stdout_truncated,omitempty"`
	StderrTruncated bool          `json:"stderr_truncated,omitempty"`
	OutputID        cove.OutputID `json:"output_id,omitempty"`
	OutputLost      string        `json:"output_lost,omitempty" jsonschema:"why output that should have been kept was not: the disk is full, or the tenant keeps as much as it may. The program ran"`
	ExecutionTimeMS float64       `json:"execution_time_ms"`
	CPUTimeMS       float64       `json:"cpu_time_ms"`
	PeakMemoryBytes cove.Bytes    `json:"peak_memory_bytes,omitempty"`
	Refusal         *cove.Refusal `json:"refusal,omitempty" jsonschema:"why it was blocked"`
	Provider        string        `json:"provider"`
	PID             cove.PID      `json:"pid,omitempty" jsonschema:"of a background program"`
	SessionID       cove.ID       `json:"session_id" jsonschema:"where it ran"`
	Recreated       bool          `json:"session_recreated,omitempty" jsonschema:"the session had expired or was lost, and a client that retries opened this one in its place: files may be gone"`
	Restarted       bool          `json:"session_restarted,omitempty" jsonschema:"the session had been stopped and was started again since the last answer: files are kept, variables and programs that ran are gone"`
	Cost            *cove.Cost    `json:"cost_estimate,omitempty" jsonschema:"what the provider asks for this, about; left out where the server knows no prices"`
}

// ExecutionOf returns the form of e.
func ExecutionOf(e *cove.Execution) Execution {
	w := Execution{
		ExitCode: e.ExitCode, Status: statusOf(e.Result), Outcome: e.Outcome, Signal: e.Signal,
		StdoutBytes: e.Stdout.Bytes, StderrBytes: e.Stderr.Bytes, StdoutLines: e.Stdout.Lines, StderrLines: e.Stderr.Lines, Truncated: e.Stdout.Truncated || e.Stderr.Truncated,
		StdoutTruncated: e.Stdout.Truncated, StderrTruncated: e.Stderr.Truncated, OutputID: e.OutputID, OutputLost: e.OutputLost,
		ExecutionTimeMS: in(e.Wall, time.Millisecond), CPUTimeMS: in(e.CPU, time.Millisecond), PeakMemoryBytes: e.PeakMemory,
		Refusal: e.Refusal, Provider: e.Provider, PID: e.PID, SessionID: e.Session, Recreated: e.Recreated, Restarted: e.Restarted, Cost: e.Cost,
	}
	w.Stdout, w.StdoutBase64 = texts(e.Stdout.Data)
	w.Stderr, w.StderrBase64 = texts(e.Stderr.Data)
	return w
}

// Cove returns the platform's own form.
func (w Execution) Cove() *cove.Execution {
	return &cove.Execution{
		Result: cove.Result{
			Outcome: w.Outcome, ExitCode: w.ExitCode, Signal: w.Signal, PeakMemory: w.PeakMemoryBytes,
			Wall: of(w.ExecutionTimeMS, time.Millisecond), CPU: of(w.CPUTimeMS, time.Millisecond),
		},
		PID:      w.PID,
		Stdout:   cove.Output{Data: untexts(w.Stdout, w.StdoutBase64), Bytes: w.StdoutBytes, Lines: w.StdoutLines, Truncated: w.StdoutTruncated},
		Stderr:   cove.Output{Data: untexts(w.Stderr, w.StderrBase64), Bytes: w.StderrBytes, Lines: w.StderrLines, Truncated: w.StderrTruncated},
		OutputID: w.OutputID, OutputLost: w.OutputLost, Refusal: w.Refusal, Provider: w.Provider, Session: w.SessionID, Recreated: w.Recreated, Restarted: w.Restarted, Cost: w.Cost,
	}
}

// RetryHeader marks a request that a client makes again because of the reason in
// it, session_expired or node_lost, so that a server can count such requests. It
// changes nothing else.
const RetryHeader = "Cove-Retry"
