package cluster_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cluster"
)

// waits reports whether an error tells the caller to try again after a while.
func waits(err error) bool {
	e, ok := errors.AsType[*cove.Error](err)
	return ok && e.Details["retry_after"] != nil
}

// request is one call about a session, and whether it may be made again unseen.
type request struct {
	again bool
	do    func(t *testing.T, p cove.Platform, id cove.ID) error
}

// requests are calls of every kind.
func requests() map[string]request {
	key := "k"
	return map[string]request{
		"exec": {false, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "echo >> f"})
			return err
		}},
		"start": {false, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Processes(id).Start(t.Context(), cove.ExecRequest{Line: "echo >> f"})
			return err
		}},
		"start with a key": {true, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Processes(id).Start(t.Context(), cove.ExecRequest{Line: "echo >> f", IdempotencyKey: key})
			return err
		}},
		"input": {false, func(t *testing.T, p cove.Platform, id cove.ID) error {
			return p.Processes(id).Input(t.Context(), 1, []byte("x"), false)
		}},
		"code": {false, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Contexts(id).Run(t.Context(), cove.CodeRequest{Code: "x += 1"})
			return err
		}},
		"write": {false, func(t *testing.T, p cove.Platform, id cove.ID) error {
			return p.Files(id).Write(t.Context(), "f", strings.NewReader("x"), 0o644)
		}},
		"trial": {false, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Trials(id).Run(t.Context(), cove.TrialRequest{ExecRequest: cove.ExecRequest{Line: "echo >> f"}})
			return err
		}},
		"question": {false, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Runs().Submit(t.Context(), cove.RunRequest{Session: id, SQL: "SELECT 1"})
			return err
		}},
		"fork": {false, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Snapshots().Fork(t.Context(), id, cove.ForkRequest{})
			return err
		}},
		"fork with a key": {true, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Snapshots().Fork(t.Context(), id, cove.ForkRequest{IdempotencyKey: key})
			return err
		}},
		"close and keep": {false, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Sessions().Close(t.Context(), id, true)
			return err
		}},
		"read": {true, func(t *testing.T, p cove.Platform, id cove.ID) error {
			r, err := p.Files(id).Read(t.Context(), "f", 0, -1)
			if err == nil {
				_, err = io.Copy(io.Discard, r)
				_ = r.Close()
			}
			return err
		}},
		"get": {true, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Sessions().Get(t.Context(), id)
			return err
		}},
		"stop": {true, func(t *testing.T, p cove.Platform, id cove.ID) error {
			_, err := p.Sessions().Stop(t.Context(), id)
			return err
		}},
	}
}

// TestUnanswered has a node break off calls after they were sent, and then be no more.
// What may have been done is not to be tried again; what was not sent is.
func TestUnanswered(t *testing.T) {
	a, b := pair(t)
	cordon(t, a, b)
	p := a.member.As(somebody())
	s := open(t, p, cove.Spec{})
	if s.Node != "b" {
		t.Fatalf("the session is at %s", s.Node)
	}
	b.silent.Store(true)
	for name, r := range requests() {
		want := cove.ReasonOutcomeUnknown
		if r.again {
			want = cove.ReasonNodeAway
		}
		err := r.do(t, p, s.ID)
		if cove.CodeOf(err) != cove.Unavailable || cove.ReasonOf(err) != want || waits(err) != r.again || cove.RemedyOf(err) == "" {
			t.Errorf("%s, which was sent: %v, reason %q, to be tried again: %t; want %q", name, err, cove.ReasonOf(err), waits(err), want)
		}
	}
	for name, spec := range map[string]cove.Spec{"new": {}, "of a user": {User: "u"}} {
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: spec})
		if unknown := cove.ReasonOf(err) == cove.ReasonOutcomeUnknown; unknown != (spec.User == "") || unknown == waits(err) {
			t.Errorf("open of a session %s, which was sent: %v", name, err)
		}
	}
	b.silent.Store(false)
	b.crash()
	for name, r := range requests() {
		if err := r.do(t, p, s.ID); cove.ReasonOf(err) != cove.ReasonNodeAway || !waits(err) {
			t.Errorf("%s, which was not sent: %v", name, err)
		}
	}
}

// TestPassedOnUnanswered is the same for requests that are handed on whole.
func TestPassedOnUnanswered(t *testing.T) {
	a, b := pair(t)
	var told error
	refuse := func(_ http.ResponseWriter, _ *http.Request, err error) { told = err }
	pass := func(method string) {
		t.Helper()
		h, err := a.member.Pass(t.Context(), cluster.Mark("b"), refuse)
		if err != nil {
			t.Fatal(err)
		}
		told = nil
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "/mcp", http.NoBody))
	}
	b.silent.Store(true)
	if pass(http.MethodPost); cove.ReasonOf(told) != cove.ReasonOutcomeUnknown || waits(told) {
		t.Errorf("a call that was sent: %v", told)
	}
	if pass(http.MethodGet); cove.ReasonOf(told) != cove.ReasonNodeAway || !waits(told) {
		t.Errorf("a look that was sent: %v", told)
	}
	b.silent.Store(false)
	b.crash()
	if pass(http.MethodPost); cove.ReasonOf(told) != cove.ReasonNodeAway || !waits(told) {
		t.Errorf("a call that was not sent: %v", told)
	}
}
