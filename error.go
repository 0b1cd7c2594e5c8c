package cove

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// A Code says who must act on an error. Codes are part of the API: each maps
// to one HTTP status, one CLI exit code and one MCP error.
type Code string

// The whole set. Adding one means adding a row to every mapping table; the
// tests walk [Codes] and fail where a table lacks a row.
const (
	Invalid         Code = "invalid"         // the request is malformed: fix it
	Unauthenticated Code = "unauthenticated" // we do not know who you are
	Denied          Code = "denied"          // policy says no
	NotFound        Code = "not_found"       // no such thing, or not yours
	Conflict        Code = "conflict"        // the thing is in another state
	Exhausted       Code = "exhausted"       // a quota or the machine is full: later, or less
	Unsupported     Code = "unsupported"     // this provider cannot enforce or do that
	Unavailable     Code = "unavailable"     // a dependency is down: retry
	Timeout         Code = "timeout"         // the operation's deadline passed
	Canceled        Code = "canceled"        // the caller went away
	Internal        Code = "internal"        // our bug
)

// Codes returns every code, in the order of their declaration.
func Codes() []Code {
	return []Code{
		Invalid, Unauthenticated, Denied, NotFound, Conflict, Exhausted,
		Unsupported, Unavailable, Timeout, Canceled, Internal,
	}
}

// Error makes a Code the target of [errors.Is].
func (c Code) Error() string { return string(c) }

// Reasons are the finer words under a code, found in Details["reason"].
const (
	ReasonSessionExpired   = "session_expired"   // not_found: the idle timeout or lifetime ran out
	ReasonSessionClosed    = "session_closed"    // not_found: somebody closed it
	ReasonNodeLost         = "node_lost"         // not_found: what held it is gone
	ReasonProviderDown     = "provider_down"     // conflict: its provider cannot be reached; the session is kept
	ReasonOutcomeUnknown   = "outcome_unknown"   // unavailable, or conflict where the result is lost for good: it may have been done or not; look before you ask again
	ReasonNodeAway         = "node_away"         // unavailable: the node that has it cannot be reached now
	ReasonElsewhere        = "elsewhere"         // conflict or not_found: another node has it; only nodes say this to each other
	ReasonFenced           = "fenced"            // unavailable: this node lost its lease
	ReasonNoDirectory      = "no_directory"      // unavailable: what nodes share cannot be reached, or is being put together
	ReasonRecovery         = "recovery"          // unavailable: the database does not know what is there; see cove recover
	ReasonSessionStopped   = "session_stopped"   // conflict: start it first
	ReasonSessionPaused    = "session_paused"    // conflict: resume it first
	ReasonTrialOpen        = "trial_open"        // conflict: commit or discard it first
	ReasonTrialLost        = "trial_lost"        // not_found: its layer went with the server
	ReasonSpecDiffers      = "spec_differs"      // conflict: the live session was opened otherwise
	ReasonKeyReused        = "idempotency_key"   // conflict: the key stands for another request
	ReasonApproval         = "approval_required" // denied: policy wants a person to agree
	ReasonCommandPolicy    = "command_policy"    // denied: the command policy does not allow a terminal
	ReasonFileTooLarge     = "file_too_large"    // invalid: over the limit on one file
	ReasonWorkspaceFull    = "workspace_full"    // exhausted: no bytes or no files left
	ReasonVolumeFull       = "volume_full"       // exhausted: a volume is over its limit
	ReasonVolumeOverrun    = "volume_overrun"    // not_found: a volume that it could write to went over its limit
	ReasonKernelMemory     = "kernel_memory"     // not_found, and conflict for what ran: its programs held more locks or sockets than they may
	ReasonQueueFull        = "queue_full"        // exhausted: too many callers wait already
	ReasonTenantQuota      = "tenant_quota"      // exhausted: the tenant's own bound
	ReasonTenantDisk       = "tenant_disk"       // exhausted: the tenant keeps as many bytes on the disk as it may
	ReasonDiskReserve      = "disk_reserve"      // exhausted: what is left of the disk is for the journal and the database
	ReasonCapacity         = "capacity"          // exhausted: the machine's bound
	ReasonEvicted          = "evicted"           // a cause: the server stopped the session to make room
	ReasonDrained          = "drained"           // a cause: the server stopped the session to move it to another node
	ReasonKeyQuota         = "key_quota"         // exhausted: the key has as many sessions as it may
	ReasonRateLimited      = "rate_limited"      // exhausted: the key asks too often
	ReasonLimitNotEnforced = "limit"             // unsupported: a limit that cannot be enforced here
	ReasonNoSession        = "no_such_session"   // not_found: nobody knows of it, or it is not yours
	ReasonConnection       = "connection"        // unavailable: no answer, or none of Cove's
	ReasonConfiguration    = "configuration"     // invalid or unavailable: a setting does not fit
	ReasonSandboxCreation  = "sandbox_creation"  // unavailable and others: the provider could not make one
	ReasonCodeFailed       = "code_failed"       // any: code that failed, as an error
	ReasonCommandFailed    = "command_failed"    // any: a program that failed, as an error
)

// Error is the only error type that crosses a package boundary of the platform.
type Error struct {
	Code    Code
	Op      string         // "session.open"
	Message string         // safe to show to the caller; says what to do next
	Details map[string]any // machine-readable, safe to show
	Err     error          // the cause: logged, never sent
}

// Error is the text for a log; it holds the cause. Show callers [Error.Message].
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	b.WriteString(string(e.Code) + ": " + e.Message)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the code of e, or a class that e is of.
func (e *Error) Is(target error) bool {
	switch target := target.(type) {
	case Code:
		return target == e.Code
	case Class:
		reason, _ := e.Details["reason"].(string)
		return target.is(e.Code, reason)
	}
	return false
}

// With returns a copy of e with one more detail.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Details = maps.Clone(e.Details)
	if c.Details == nil {
		c.Details = map[string]any{}
	}
	c.Details[key] = value
	return &c
}

// Reason returns a copy of e with a finer word under its code.
func (e *Error) Reason(reason string) *Error { return e.With("reason", reason) }

// Remedy returns a copy of e with the sentence that says what to do.
func (e *Error) Remedy(format string, args ...any) *Error {
	return e.With("remedy", fmt.Sprintf(format, args...))
}

// Errorf returns an error whose message the caller may see.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap is [Errorf] with a cause, which is logged and never sent.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}

// InvalidField returns the error for one bad field of a request or a setting.
// The message starts with the field's name, as the caller wrote it.
func InvalidField(field, format string, args ...any) *Error {
	return Errorf(Invalid, "%s: %s", field, fmt.Sprintf(format, args...)).With("field", field)
}

// CodeOf returns the code of err: its own, or that of the context error it
// wraps, or Internal. It returns "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if c, ok := errors.AsType[Code](err); ok {
		return c
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, errors.ErrUnsupported):
		return Unsupported
	}
	return Internal
}

// ReasonOf returns the finer word under the code of err, or "".
func ReasonOf(err error) string { return detail(err, "reason") }

// RemedyOf returns the sentence that says what to do about err, or "".
func RemedyOf(err error) string { return detail(err, "remedy") }

// MessageOf returns the part of err that may be shown to a caller. An error
// that is not ours shows only its code: its text may hold anything.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	switch CodeOf(err) { //nolint:exhaustive // foreign errors have only these codes
	case Canceled:
		return "the caller went away"
	case Timeout:
		return "the deadline passed"
	case Unsupported:
		return "not supported here"
	}
	return "internal error; the log has the cause under the request id"
}

func detail(err error, key string) string {
	if e, ok := errors.AsType[*Error](err); ok {
		s, _ := e.Details[key].(string)
		return s
	}
	return ""
}
