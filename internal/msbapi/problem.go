package msbapi

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/cove-sandbox/cove"
)

// Codes of the original, beside a status or in an error of JSON-RPC.
const (
	codeCredentials = 1001
	codeToken       = 1004
	codeParams      = 2001
	codeNamespace   = 3001
	codeInternal    = 5002

	codeNoJSON    = -32700
	codeNoRequest = -32600
	codeNoMethod  = -32601
)

// failure is an answer that says what went wrong. It is written by refuse alone.
type failure struct {
	status int
	code   int
	text   string
	detail string // the cause, where the original's text says none
	cause  error  // for the log
	wait   string // seconds, where trying again helps
}

// Error implements error.
func (f *failure) Error() string { return f.text }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.cause }

// wrong is the answer to a request that cannot be meant.
func wrong(text string) *failure {
	return &failure{status: http.StatusBadRequest, code: codeParams, text: text}
}

// broken is the original's answer to all that goes wrong inside.
func broken(cause error) *failure {
	return &failure{status: http.StatusInternalServerError, code: codeInternal, text: "Internal server error", detail: words(cause), cause: cause}
}

// denied is the answer to a key of another namespace, or without the scope.
func denied(cause error) *failure {
	return &failure{status: http.StatusForbidden, code: codeNamespace, text: "Access denied", detail: words(cause), cause: cause}
}

// words is what a caller may know of an error, and what to do about it.
func words(err error) string {
	if err == nil {
		return ""
	}
	text := cove.MessageOf(err)
	if remedy := cove.RemedyOf(err); remedy != "" {
		text += "; " + remedy
	}
	return text
}

// failed turns an error of the platform into an answer. Callers that ask for what
// cannot be are told so; all else is an internal error, as in the original.
func failed(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	switch cove.CodeOf(err) {
	case cove.Invalid, cove.Unsupported:
		f := wrong(words(err))
		f.cause = err
		return f
	case cove.Unauthenticated:
		return &failure{status: http.StatusUnauthorized, code: codeToken, text: "Invalid or expired token", detail: words(err), cause: err}
	case cove.Denied:
		return denied(err)
	case cove.Exhausted:
		if cove.ReasonOf(err) == cove.ReasonRateLimited {
			return &failure{status: http.StatusTooManyRequests, code: codeInternal, text: "Too many requests", detail: words(err), cause: err, wait: "1"}
		}
		f := broken(err)
		if reason := cove.ReasonOf(err); reason == cove.ReasonTenantDisk || reason == cove.ReasonDiskReserve {
			f.status, f.text = http.StatusInsufficientStorage, "Insufficient storage"
		}
		return f
	case cove.NotFound, cove.Conflict, cove.Unavailable, cove.Timeout, cove.Canceled, cove.Internal:
		return broken(err)
	}
	return broken(err)
}

// refuse answers with an error, unless an answer has begun.
func (c *call) refuse(err error) {
	f := failed(err)
	if f.status >= http.StatusInternalServerError {
		c.Logger.LogAttrs(c.r.Context(), slog.LevelWarn, "microsandbox request failed", slog.String("method", c.method), slog.Any("error", f.cause))
	}
	if c.status != 0 {
		return
	}
	if f.wait != "" {
		c.w.Header().Set("Retry-After", f.wait)
	}
	if f.code < 0 {
		c.send(f.status, map[string]any{"jsonrpc": version, "error": map[string]any{"code": f.code, "message": f.text}, "id": c.id})
		return
	}
	body := map[string]any{"error": f.text, "code": f.code}
	if f.detail != "" {
		body["detail"] = f.detail
	}
	c.send(f.status, body)
}
