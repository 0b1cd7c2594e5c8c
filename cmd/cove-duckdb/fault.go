//go:build linux

package main

import (
	"errors"
	"strings"

	"github.com/cove-sandbox/cove/cmd/cove-duckdb/duck"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

var errStopped = &ask.Fault{Kind: ask.Stopped, Message: "it was stopped"}

func badRequest(message string) *ask.Fault {
	return &ask.Fault{Kind: ask.BadRequest, Message: message}
}

// maxMessage bounds what is said about a fault.
const maxMessage = 1000

// faultOf says in the words of an answer what went wrong with a request.
func faultOf(err error, r *ask.Request) *ask.Fault {
	if fault, ok := errors.AsType[*ask.Fault](err); ok {
		return fault
	}
	said, ok := errors.AsType[*duck.Error](err)
	if !ok {
		return &ask.Fault{Kind: ask.Internal, Message: shorten(err.Error())}
	}
	fault := &ask.Fault{Kind: kindOf(said), Message: messageOf(said)}
	place(fault, said, textOf(r))
	return fault
}

// place says where in the text it is.
func place(fault *ask.Fault, said *duck.Error, sql string) {
	at := said.Position
	if said.Subtype == "SYNTAX_ERROR" && at > 0 {
		at = byteAt(sql, at)
	}
	if at < 0 || at > len(sql) {
		return
	}
	before := sql[:at]
	fault.Offset = at
	fault.Line = 1 + strings.Count(before, "\n")
	fault.Column = len(before) - strings.LastIndexByte(before, '\n')
}

// byteAt is where a character begins: the engine's parser counts those, and only
// what comes after it counts bytes.
func byteAt(s string, character int) int {
	for at := range s {
		if character == 0 {
			return at
		}
		character--
	}
	return len(s) + character
}

// textOf is the text that a request is about.
func textOf(r *ask.Request) string {
	switch {
	case r.Query != nil:
		return r.Query.SQL
	case r.Frame != nil:
		return r.Frame.SQL
	case r.Parse != nil:
		return r.Parse.SQL
	default:
		return ""
	}
}

func kindOf(e *duck.Error) ask.Kind {
	switch e.Type {
	case duck.TypeParser:
		return ask.Syntax
	case duck.TypeNotOne:
		return ask.NotOne
	case duck.TypeNotSelect:
		return ask.NotSelect
	case duck.TypeMemory:
		return ask.Memory
	case duck.TypeInterrupt:
		return ask.Stopped
	case duck.TypeFatal, duck.TypeInternal:
		return ask.Internal
	default:
		return ask.Failed
	}
}

// messageOf is what the engine said, without advice that whoever asks cannot follow:
// that begins on its second line. Names that may have been meant are kept.
func messageOf(e *duck.Error) string {
	if e.Type == duck.TypeMemory {
		return "there is not enough memory for it"
	}
	if strings.HasPrefix(e.Message, "Max expression depth") || strings.HasPrefix(e.Message, "memory exhausted") {
		return "it is nested too deeply"
	}
	message, _, _ := strings.Cut(e.Message, "\n")
	message = strings.TrimRight(message, "! ")
	if e.Candidates != "" && !strings.HasPrefix(e.Candidates, "pg_") && !strings.HasPrefix(e.Candidates, "duckdb_") {
		message += "; there is " + e.Candidates
	}
	return shorten(message)
}

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + ask.CutMark
}
