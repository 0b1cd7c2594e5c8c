package cove_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func classes(err error) []cove.Class {
	var all []cove.Class
	for _, c := range cove.Classes() {
		if errors.Is(err, c) {
			all = append(all, c)
		}
	}
	return all
}

func TestClasses(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want []cove.Class
	}{
		{cove.Errorf(cove.NotFound, "x"), nil},
		{errors.New("x"), nil},
		{fmt.Errorf("open: %w", cove.Errorf(cove.Exhausted, "full")), []cove.Class{cove.ErrResourceLimit}},
		{cove.Errorf(cove.NotFound, "x").Reason(cove.ReasonSessionExpired), []cove.Class{cove.ErrSessionNotFound}},
		{cove.Errorf(cove.NotFound, "x").Reason(cove.ReasonNodeLost), []cove.Class{cove.ErrSessionNotFound}},
		{cove.Errorf(cove.Unavailable, "x").Reason(cove.ReasonConnection), []cove.Class{cove.ErrConnection}},
		{cove.Errorf(cove.Conflict, "x").Reason(cove.ReasonProviderDown), []cove.Class{cove.ErrConnection}},
		{cove.InvalidField("X", "x").Reason(cove.ReasonConfiguration), []cove.Class{cove.ErrConfiguration}},
		{cove.Errorf(cove.Unsupported, "x").Reason(cove.ReasonLimitNotEnforced), []cove.Class{cove.ErrSandboxCreation}},
		{cove.Errorf(cove.Exhausted, "x").Reason(cove.ReasonCodeFailed), []cove.Class{cove.ErrResourceLimit, cove.ErrCodeExecution}},
	} {
		if got := classes(tt.err); !slices.Equal(got, tt.want) {
			t.Errorf("%v is of %v, want %v", tt.err, got, tt.want)
		}
	}
	if got := cove.ErrConnection.Error(); got != "connection" {
		t.Errorf("%q", got)
	}
}

func TestWithReason(t *testing.T) {
	if cove.WithReason(nil, "x") != nil {
		t.Error("nil has become an error")
	}
	if got := cove.ReasonOf(cove.WithReason(cove.Errorf(cove.Exhausted, "full").Reason("capacity"), "x")); got != "capacity" {
		t.Errorf("the first reason is lost: %q", got)
	}
	err := cove.WithReason(context.DeadlineExceeded, "x")
	if cove.CodeOf(err) != cove.Timeout || cove.ReasonOf(err) != "x" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a foreign error: %v", err)
	}
}

func ended(o cove.Outcome, exit int) cove.Execution {
	return cove.Execution{Result: cove.Result{Outcome: o, ExitCode: exit, Wall: 1500 * time.Millisecond}}
}

func TestErrOfWhatRan(t *testing.T) {
	for _, o := range cove.Outcomes() {
		x := ended(o, 7)
		if classes(x.Err()) == nil {
			t.Errorf("%s is no error", o)
		}
	}
	signaled := ended(cove.Signaled, 139)
	signaled.Signal = "SEGV"
	loud := ended(cove.Exited, 1)
	loud.Stderr.Data = []byte("Traceback\n\x1b[31m" + strings.Repeat("é", 300) + "\xff\n\n")
	blocked := ended(cove.Blocked, 126)
	blocked.Refusal = &cove.Refusal{Rule: "program", Reason: "curl is not allowed"}
	blocked.Stderr.Data = []byte("cove: blocked\n")
	for _, tt := range []struct {
		x    cove.Execution
		code cove.Code
		text string
	}{
		{ended(cove.Exited, 0), "", ""},
		{ended(cove.Exited, 2), cove.Invalid, "the program failed with exit code 2"},
		{ended(cove.TimedOut, -1), cove.Timeout, "the program ran out of time after 1.5s"},
		{ended(cove.OutOfMemory, 137), cove.Exhausted, "the program needed more memory than it may have"},
		{ended(cove.OutputLimit, 137), cove.Exhausted, "the program wrote more than it may"},
		{ended(cove.Killed, 137), cove.Canceled, "the program was killed"},
		{signaled, cove.Invalid, "the program ended by the signal SEGV"},
		{loud, cove.Invalid, "the program failed with exit code 1: [31m" + strings.Repeat("é", 98) + "…"},
		{ended(cove.Blocked, 126), cove.Denied, "the program was not run: policy does not allow it"},
		{blocked, cove.Denied, "the program was not run: curl is not allowed"},
		{ended("odd", 1), cove.Invalid, `the program ended as "odd"`},
	} {
		err := tt.x.Err()
		if cove.CodeOf(err) != tt.code || err != nil && cove.MessageOf(err) != tt.text {
			t.Errorf("%s: %v, want %q", tt.x.Outcome, err, tt.text)
		}
	}
}

func TestErrOfCode(t *testing.T) {
	fine := cove.CodeResult{Execution: ended(cove.Exited, 0)}
	if err := fine.Err(); err != nil {
		t.Error(err)
	}
	raised := cove.CodeResult{Execution: ended(cove.Exited, 0), Error: &cove.CodeError{Name: "ValueError", Value: "no\nsuch value", Line: 3}}
	err := raised.Err()
	ours, _ := errors.AsType[*cove.Error](err)
	if got := classes(err); !slices.Equal(got, []cove.Class{cove.ErrCodeExecution}) || ours.Details["line"] != 3 || ours.Details["error"] != "ValueError" {
		t.Errorf("%v is of %v with %v", err, got, ours.Details)
	}
	failed := cove.CodeResult{Execution: ended(cove.Exited, 3)}
	failed.Stderr.Data = []byte("bad\n")
	if got := cove.MessageOf(failed.Err()); got != "the code failed with exit code 3: bad" {
		t.Errorf("%q", got)
	}
}
