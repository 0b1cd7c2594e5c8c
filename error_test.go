package cove_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cove-sandbox/cove"
)

func TestErrorsAreFoundByCode(t *testing.T) {
	cause := errors.New("no such table")
	err := fmt.Errorf("get session: %w", cove.Wrap(cove.NotFound, cause, "there is no session").Reason("session_expired").Remedy("open %s", "one"))
	if !errors.Is(err, cove.NotFound) || errors.Is(err, cove.Denied) || !errors.Is(err, cause) {
		t.Errorf("%v is not found by its code and its cause", err)
	}
	if got := cove.ReasonOf(err); got != "session_expired" {
		t.Errorf("the reason is %q", got)
	}
	if got := cove.RemedyOf(err); got != "open one" {
		t.Errorf("the remedy is %q", got)
	}
	if got := cove.MessageOf(err); got != "there is no session" {
		t.Errorf("the message shows %q: a cause must not be shown", got)
	}
}

func TestErrorTextIsForTheLog(t *testing.T) {
	e := cove.Wrap(cove.Unavailable, errors.New("EIO"), "the disk is gone")
	e.Op = "session.open"
	if got, want := e.Error(), "session.open: unavailable: the disk is gone: EIO"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := cove.NotFound.Error(), "not_found"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWithDoesNotChangeTheOriginal(t *testing.T) {
	a := cove.InvalidField("flavor", "%q is unknown", "x")
	b := a.With("allowed", "small")
	if _, ok := a.Details["allowed"]; ok || b.Details["field"] != "flavor" || b.Details["allowed"] != "small" {
		t.Errorf("a has %v and b has %v", a.Details, b.Details)
	}
}

func TestForeignErrorsHaveACode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code cove.Code
	}{
		{nil, ""},
		{context.Canceled, cove.Canceled},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), cove.Timeout},
		{errors.ErrUnsupported, cove.Unsupported},
		{fmt.Errorf("put: %w", cove.Conflict), cove.Conflict},
		{errors.New("secret /etc/path"), cove.Internal},
	} {
		if got := cove.CodeOf(tt.err); got != tt.code {
			t.Errorf("%v has code %q, want %q", tt.err, got, tt.code)
		}
		if tt.err != nil && cove.MessageOf(tt.err) == tt.err.Error() {
			t.Errorf("%v is shown as it is", tt.err)
		}
		if cove.ReasonOf(tt.err) != "" {
			t.Errorf("%v has a reason", tt.err)
		}
	}
}

func TestCodesAreAllThere(t *testing.T) {
	codes := cove.Codes()
	slices.Sort(codes)
	if len(codes) != 11 || len(slices.Compact(codes)) != 11 {
		t.Errorf("there are %d codes", len(codes))
	}
}
