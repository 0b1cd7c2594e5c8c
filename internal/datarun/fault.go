package datarun

import (
	"context"
	"errors"
	"fmt"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
)

// problem is a question that failed for a reason that is told as it is.
type problem struct{ cove.RunError }

// Error implements error.
func (p *problem) Error() string { return p.Type + ": " + p.Message }

func fail(kind, format string, args ...any) error {
	return &problem{cove.RunError{Type: kind, Message: fmt.Sprintf(format, args...)}}
}

// invalid is a question about what is not there, or cannot be read.
func invalid(format string, args ...any) error { return fail(cove.RunInvalidInput, format, args...) }

// refused is a question that policy refuses.
func refused(kind string, why *cove.Refusal) error {
	text := why.Reason
	if why.Line > 0 {
		text = fmt.Sprintf("line %d, column %d: %s", why.Line, why.Column, text)
	}
	return &problem{cove.RunError{Type: kind, Message: text + " (" + why.Rule + ")", Refusal: why}}
}

// overtime is a question that took too long.
func overtime(t *task) error {
	return fail(cove.RunTimeout, "the run took longer than %s", t.q.Request.Timeout)
}

// faultOf says what an error is to who asked. What nobody typed comes from below: no
// sandbox could be had, or it was lost.
func faultOf(err error) *cove.RunError {
	if p, ok := errors.AsType[*problem](err); ok {
		e := p.RunError
		return &e
	}
	kind := duckdb.TypeOf(err)
	if kind == cove.RunTimeout && !errors.Is(err, context.DeadlineExceeded) || kind == cove.RunUnavailable && cove.CodeOf(err) == cove.Internal {
		kind = cove.RunInternalError
	}
	text := cove.MessageOf(err)
	if e, ok := errors.AsType[*cove.Error](err); ok {
		if line, ok := e.Details["line"].(int); ok {
			text = fmt.Sprintf("line %d, column %v: %s", line, e.Details["column"], text)
		}
	}
	if remedy := cove.RemedyOf(err); remedy != "" {
		text += "; " + remedy
	}
	return &cove.RunError{Type: kind, Message: text}
}
