package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// Exit codes beside those of programs and of [exitCodes].
const (
	exitOK       = 0
	exitProblem  = 1   // audit verify found something
	exitPlatform = 125 // where a program's own code would be expected
	exitRefused  = 126 // policy did not let the program run
	exitTimeout  = 124
)

// exitCodes has a row for every code; a test walks them.
var exitCodes = map[cove.Code]int{
	cove.Invalid:         2,
	cove.Unauthenticated: 3,
	cove.Denied:          4,
	cove.NotFound:        5,
	cove.Conflict:        6,
	cove.Exhausted:       7,
	cove.Unsupported:     8,
	cove.Unavailable:     69,
	cove.Timeout:         exitTimeout,
	cove.Canceled:        130,
	cove.Internal:        70,
}

// exitError ends the process with a code and says nothing more.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// platformError is a failure of a command that passes a program's code on.
type platformError struct{ err error }

func (e platformError) Error() string { return e.err.Error() }
func (e platformError) Unwrap() error { return e.err }

// exitCode returns how the process ends after err.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if e, ok := errors.AsType[exitError](err); ok {
		return e.code
	}
	code := cove.CodeOf(err)
	if _, ok := errors.AsType[platformError](err); ok && code != cove.Canceled {
		return exitPlatform
	}
	return exitCodes[code]
}

// problem is an error for programs, in the words of the HTTP API.
type problem struct {
	Code    cove.Code    `json:"code"`
	Reason  string       `json:"reason,omitempty"`
	Error   string       `json:"error"`
	Remedy  string       `json:"remedy,omitempty"`
	Details wire.Details `json:"details,omitempty"`
}

// complain says what went wrong: to people, or with --json to programs.
func (a *app) complain(err error) {
	if _, ok := errors.AsType[exitError](err); ok || err == nil {
		return
	}
	if !a.json {
		complain(a.sys.Stderr, err)
		return
	}
	p := wire.ProblemOf(err, "")
	enc := json.NewEncoder(a.sys.Stderr)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(problem{p.Code, p.Reason, p.Error, p.Remedy, p.Details}) // there is nowhere else to say it
}

// complain says what went wrong: the message, the cause where this process
// knows it, and what to do.
func complain(w io.Writer, err error) {
	if err == nil {
		return
	}
	if cove.CodeOf(err) == cove.Canceled {
		_, _ = io.WriteString(w, "cove: interrupted\n") // there is nowhere else to say it
		return
	}
	text := "cove: " + escape(cove.MessageOf(err)) + "\n"
	e, ours := errors.AsType[*cove.Error](err)
	switch {
	case ours && e.Err != nil:
		text += "  cause: " + escape(e.Err.Error()) + "\n"
	case !ours && cove.CodeOf(err) == cove.Internal:
		text = "cove: " + escape(err.Error()) + "\n"
	}
	if remedy := cove.RemedyOf(err); remedy != "" {
		text += "  " + escape(remedy) + "\n"
	}
	_, _ = io.WriteString(w, text) // there is nowhere else to say it
}
