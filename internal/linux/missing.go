// Package linux says what a host lacks, and reads what its kernel says.
//
// The packages below it wrap one kernel feature each, and each has a probe. What
// a probe finds missing is a [Missing], whose sentences people read in doctor
// and in refusals. The package knows no feature itself, and it must not import
// the root package: the agent inside a sandbox links these packages, and the
// root package would cost it half a millisecond at every start.
package linux

import (
	"errors"
	"strings"
)

// Missing says that this host lacks a feature, why, and what to do about it. It
// is also [errors.ErrUnsupported].
type Missing struct {
	Feature string // such as "user namespaces"
	Why     string // a clause: "the kernel was built without them"
	Remedy  string // what to do, as a clause
	Err     error  // what the kernel said, if it was asked
}

// Error is the feature, the cause, and what the kernel said.
func (m *Missing) Error() string {
	var b strings.Builder
	b.WriteString(m.Feature + ": " + m.Why)
	if m.Err != nil {
		b.WriteString(" (" + m.Err.Error() + ")")
	}
	return b.String()
}

// Unwrap returns what the kernel said.
func (m *Missing) Unwrap() error { return m.Err }

// Is makes every Missing an [errors.ErrUnsupported].
func (m *Missing) Is(target error) bool { return target == errors.ErrUnsupported }

// RemedyOf returns what to do about err, or "" where it is no [Missing].
func RemedyOf(err error) string {
	if m, ok := errors.AsType[*Missing](err); ok {
		return m.Remedy
	}
	return ""
}
