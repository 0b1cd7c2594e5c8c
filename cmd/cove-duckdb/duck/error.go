package duck

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Error is what the engine says went wrong.
type Error struct {
	Type    string // "Parser", "Binder", "Out of Memory", …
	Subtype string // "COLUMN_NOT_FOUND", or empty
	Message string
	// Position is where in the text, in bytes from 0, or -1.
	Position int
	// Candidates are names that may have been meant.
	Candidates string
}

func (e *Error) Error() string { return e.Message }

// The types of errors that mean something to this program.
const (
	TypeParser    = "Parser"
	TypeMemory    = "Out of Memory"
	TypeInterrupt = "INTERRUPT"
	TypeFatal     = "FATAL"
	TypeInternal  = "INTERNAL"
	// The two that are this package's own.
	TypeNotOne    = "Not One"
	TypeNotSelect = "Not Select"
)

// parseError reads what the engine says: an object with what is known, at times
// after a word or two, or plain text where it has no object.
func parseError(text string) *Error {
	e := &Error{Position: -1}
	if start := strings.IndexByte(text, '{'); start >= 0 {
		var said struct {
			Type       string `json:"exception_type"`
			Subtype    string `json:"error_subtype"`
			Message    string `json:"exception_message"`
			Position   string `json:"position"`
			Candidates string `json:"candidates"`
		}
		if json.Unmarshal([]byte(text[start:]), &said) == nil && said.Type != "" {
			e.Type, e.Subtype, e.Message, e.Candidates = said.Type, said.Subtype, said.Message, said.Candidates
			if at, err := strconv.Atoi(said.Position); err == nil && at >= 0 {
				e.Position = at
			}
			return e
		}
	}
	e.Type, e.Message = "Unknown", text
	if kind, rest, ok := strings.Cut(text, " Error: "); ok && len(kind) < 40 {
		e.Type, e.Message = kind, rest
	}
	return e
}
