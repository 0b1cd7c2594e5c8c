package duckdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// typed says in an error which type of [cove.RunError] it is.
func typed(err *cove.Error, kind string) *cove.Error { return err.With(detailType, kind) }

const detailType = "type"

// TypeOf returns the type of [cove.RunError] that an error of this package is: what
// its detail "type" says, RUNNER_TIMEOUT where a deadline passed, and else
// SANDBOX_UNAVAILABLE, since it is then the provider's. It returns "" for nil.
func TypeOf(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*cove.Error](err); ok {
		if kind, ok := e.Details[detailType].(string); ok {
			return kind
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return cove.RunTimeout
	}
	return cove.RunUnavailable
}

// garbled is the error for a helper that says what it may not.
func garbled(why string) error {
	return typed(cove.Errorf(cove.Unavailable, "DuckDB in the sandbox gave an answer that cannot be understood: %s", why).
		Remedy("try again; it was ended, and a fresh one answers then"), cove.RunInternalError)
}

// tooLong is the error for a question that fits no frame.
func tooLong(err error) error {
	return typed(cove.Wrap(cove.Invalid, err, "the question is too long"), cove.RunSQLFailed)
}

// closed is the error of a Helper after Close.
func closed() error {
	return cove.Errorf(cove.Canceled, "DuckDB was ended with the place it ran in").Remedy("ask again")
}

// starved is the error for what needs more memory than there is.
func starved(what string, memory cove.Bytes) *cove.Error {
	return typed(cove.Errorf(cove.Exhausted, "%s more than the %d MB that this session has", what, memory/cove.MiB).
		Remedy("ask for less, such as fewer columns or rows, or use a larger flavor"), cove.RunSQLFailed)
}

// What needs memory.
const (
	queryNeeds  = "the query needs"
	tablesNeed  = "the tables need"
	textNeeds   = "reading the query needs"
	exitMissing = 127
	exitNotRun  = 126
)

// broke says why a process ended that should not.
func (p *process) broke() error {
	r := p.result
	switch {
	case p.failed != nil:
		return p.failed
	case p.starved():
		return errStarved
	case r.Outcome == cove.Exited && (r.ExitCode == exitMissing || r.ExitCode == exitNotRun):
		return typed(cove.Errorf(cove.Unsupported, "the executable of DuckDB is not in the sandbox, or cannot run there").
			Remedy("use a provider that runs programs of this machine's architecture"), cove.RunUnavailable)
	case r.Outcome == cove.Killed: // not by us: that is told otherwise
		return typed(cove.Errorf(cove.Unavailable, "DuckDB was ended with the sandbox it ran in").Remedy("ask again"), cove.RunUnavailable)
	}
	how := fmt.Sprintf("exit code %d", r.ExitCode)
	if r.Signal != "" {
		how = "signal " + string(r.Signal)
	}
	// What follows the first line is a trace.
	said, _, _ := strings.Cut(strings.TrimSpace(p.said.String()), "\n")
	if said = clean(said); said != "" {
		said = ": " + said
	}
	return typed(cove.Errorf(cove.Unavailable, "DuckDB in the sandbox ended by itself (%s)%s", how, said).
		Remedy("try again: the next question starts a fresh one"), cove.RunInternalError)
}

// errStarved is a process that ended for want of memory.
var errStarved = errors.New("it ran out of memory")

// starved reports whether the process ended for want of memory: the sandbox says it,
// or it did itself with its last words.
func (p *process) starved() bool {
	if p.result.Outcome == cove.OutOfMemory {
		return true
	}
	said := p.said.String()
	return (p.result.Outcome != cove.Exited || p.result.ExitCode != 0) &&
		slices.ContainsFunc([]string{"out of memory", "cannot allocate memory", "std::bad_alloc"}, func(w string) bool { return strings.Contains(said, w) })
}

// failure makes an error of a fault. What is the subject of one about memory.
func failure(f *ask.Fault, needs string, memory cove.Bytes) error {
	shown := &Fault{Kind: f.Kind, Message: clean(f.Message), Line: max(f.Line, 0), Column: max(f.Column, 0), Offset: max(f.Offset, 0)}
	if shown.Message == "" {
		shown.Message = "the engine gives no reason"
	}
	switch f.Kind {
	case ask.Syntax, ask.NotSelect, ask.NotOne, ask.Failed, ask.Large:
		err := typed(cove.Wrap(cove.Invalid, shown, "%s", shown.Message), cove.RunSQLFailed)
		if shown.Line > 0 {
			err = err.With("line", shown.Line).With("column", shown.Column)
		}
		return err
	case ask.Memory:
		err := starved(needs, memory)
		err.Err = shown
		return err
	case ask.File:
		return typed(cove.Wrap(cove.Unavailable, shown, "the frame cannot be written: %s", shown.Message).
			Remedy("make room in the session's workspace"), cove.RunInternalError)
	case ask.BadRequest, ask.Stopped, ask.Internal:
		return typed(cove.Wrap(cove.Unavailable, shown, "DuckDB in the sandbox does not do what it should: %s", shown.Message).
			Remedy("try again; if it stays, check that cove and its DuckDB are of one build"), cove.RunInternalError)
	}
	return garbled("its fault is of no known kind")
}
