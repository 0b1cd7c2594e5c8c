package cove

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode"
)

// A Class is what went wrong in the words of somebody who runs code, across
// codes: a target for [errors.Is], in process and across a network alike. An
// error can be of more than one class, and of none.
type Class string

// The classes.
const (
	ErrResourceLimit    Class = "resource limit"    // a quota, the machine, or a program's own bound on memory or output
	ErrCodeExecution    Class = "code execution"    // code failed: [CodeResult.Err]
	ErrCommandExecution Class = "command execution" // a program failed: [Execution.Err]
	ErrSessionNotFound  Class = "session not found" // there is no such session, or not any more
	ErrConnection       Class = "connection"        // the server, or a session's provider, cannot be reached
	ErrConfiguration    Class = "configuration"     // a setting does not fit
	ErrSandboxCreation  Class = "sandbox creation"  // no sandbox could be made, for no fault of the request
)

// Classes returns every class.
func Classes() []Class {
	return []Class{
		ErrResourceLimit, ErrCodeExecution, ErrCommandExecution, ErrSessionNotFound, ErrConnection, ErrConfiguration, ErrSandboxCreation,
	}
}

// Error makes a Class the target of [errors.Is].
func (c Class) Error() string { return string(c) }

// classReasons are the reasons that make an error one of a class.
var classReasons = map[Class][]string{
	ErrCodeExecution:    {ReasonCodeFailed},
	ErrCommandExecution: {ReasonCommandFailed},
	ErrSessionNotFound:  {ReasonNoSession, ReasonSessionExpired, ReasonSessionClosed, ReasonNodeLost, ReasonVolumeOverrun, ReasonKernelMemory},
	ErrConnection:       {ReasonConnection, ReasonProviderDown},
	ErrConfiguration:    {ReasonConfiguration},
	ErrSandboxCreation:  {ReasonSandboxCreation, ReasonLimitNotEnforced},
}

// is reports whether an error with a code and a reason is of the class.
func (c Class) is(code Code, reason string) bool {
	if c == ErrResourceLimit {
		return code == Exhausted
	}
	return reason != "" && slices.Contains(classReasons[c], reason)
}

// WithReason returns err with a finer word under its code. One that has a word
// keeps it.
func WithReason(err error, reason string) error {
	if err == nil || reason == "" || ReasonOf(err) != "" {
		return err
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason(reason)
	}
	return Wrap(CodeOf(err), err, "%s", MessageOf(err)).Reason(reason)
}

// Err returns nil for a program that ended by itself with exit code 0, and
// otherwise an error of the class ErrCommandExecution, for those who want a
// program that fails to be one. Its code says how it failed: Timeout, Exhausted
// over a limit on memory or output, Denied by policy, Canceled when it was
// killed, and else Invalid.
func (x *Execution) Err() error {
	if x.Outcome == Exited && x.ExitCode == 0 {
		return nil
	}
	return x.failure("the program", lastLine(x.Stderr.Data)).Reason(ReasonCommandFailed)
}

// Err returns nil for code that ran to its end, and otherwise an error of the
// class ErrCodeExecution, as [Execution.Err] does for programs.
func (r *CodeResult) Err() error {
	if r.Outcome == Exited && r.ExitCode == 0 && r.Error == nil {
		return nil
	}
	said := lastLine(r.Stderr.Data)
	if r.Error != nil {
		said = lastLine([]byte(r.Error.Name + ": " + r.Error.Value))
	}
	err := r.failure("the code", said).Reason(ReasonCodeFailed)
	if r.Error != nil {
		err = err.With("error", shown(r.Error.Name, maxShown))
	}
	if r.Error != nil && r.Error.Line > 0 {
		err = err.With("line", r.Error.Line)
	}
	return err
}

// failure says how what ran came to its end.
func (x *Execution) failure(what, said string) *Error {
	var err *Error
	switch x.Outcome {
	case TimedOut:
		err = Errorf(Timeout, "%s ran out of time after %s", what, trimFloat(x.Wall.Seconds())+"s")
	case OutOfMemory:
		err = Errorf(Exhausted, "%s needed more memory than it may have", what)
	case OutputLimit:
		err = Errorf(Exhausted, "%s wrote more than it may", what)
	case Blocked:
		err = Errorf(Denied, "%s was not run: policy does not allow it", what)
		if x.Refusal != nil {
			err = Errorf(Denied, "%s was not run: %s", what, x.Refusal.Reason).With("rule", x.Refusal.Rule)
		}
	case Killed:
		err = Errorf(Canceled, "%s was killed", what)
	case Signaled:
		err = Errorf(Invalid, "%s ended by the signal %s", what, x.Signal)
	case Exited:
		err = Errorf(Invalid, "%s failed with exit code %d", what, x.ExitCode)
	default:
		err = Errorf(Invalid, "%s ended as %q", what, x.Outcome)
	}
	if said != "" && err.Code != Denied {
		err.Message += ": " + said
	}
	return err.With("exit_code", x.ExitCode).With("outcome", string(x.Outcome))
}

// maxShown bounds what an error repeats of a program's own words.
const maxShown = 200

// lastLine is the last line of a text that says something, fit for a message.
func lastLine(text []byte) string {
	text = bytes.TrimSpace(text[max(0, len(text)-16*maxShown):])
	return shown(string(text[bytes.LastIndexByte(text, '\n')+1:]), maxShown)
}

// shown is the start of a text without what a terminal would act on.
func shown(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return -1
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
