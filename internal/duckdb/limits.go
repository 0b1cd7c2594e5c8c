package duckdb

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits bounds what a Helper may take of its callers' time. Zero means the default.
type Limits struct {
	Start   time.Duration // to be ready for its first question: 30 s
	Load    time.Duration // to load tables, or to look at files: 60 s
	Grace   time.Duration // to leave a question alone, before it is killed: 2 s
	Waiting int           // questions that wait for their turn: 16
}

func (l Limits) withDefaults() Limits {
	if l.Start <= 0 {
		l.Start = 30 * time.Second
	}
	if l.Load <= 0 {
		l.Load = time.Minute
	}
	if l.Grace <= 0 {
		l.Grace = 2 * time.Second
	}
	if l.Waiting <= 0 {
		l.Waiting = 16
	}
	return l
}

// killTime is how long a process has to be gone after a kill; what is not goes with
// its sandbox.
const killTime = 5 * time.Second

// Bounds on texts of a helper.
const (
	maxSaid    = 8 << 10 // of what it writes to its standard error
	maxMessage = 2 << 10
	maxName    = 1 << 10 // of a column
	maxType    = 8 << 10 // of a column: those of structs are long
)

// clean makes a text from a sandbox one that can be shown: valid, on one line,
// without what a terminal would act on, and not longer than maxMessage.
func clean(text string) string {
	if len(text) > 4*maxMessage {
		text = text[:4*maxMessage]
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	if text = strings.TrimSpace(text); len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}
