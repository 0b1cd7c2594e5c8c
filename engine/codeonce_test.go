package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cove-sandbox/cove"
)

// TestCodeOnce: code with an idempotency key runs once, also where its caller goes away,
// and a key is for one request.
func TestCodeOnce(t *testing.T) {
	p := openEngine(t).As(boss)
	in := p.Contexts(mustOpen(t, p, cove.Spec{}).ID)
	ctx, leave := context.WithCancel(t.Context())
	req := cove.CodeRequest{Language: "calc", Code: "print(1)\nsleep 0.2\n6 * 7", IdempotencyKey: "k", OnOutput: func(cove.Chunk) { leave() }}
	if _, err := in.Run(ctx, req); !errors.Is(err, context.Canceled) {
		t.Fatalf("a caller that goes away is told %v", err)
	}
	req.OnOutput = nil
	for range 2 {
		r, err := in.Run(t.Context(), req)
		if err != nil || r.Count != 1 || len(r.Results) != 1 || r.Results[0]["text/plain"] != "42" || string(r.Stdout.Data) != "1\n" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	req.Code = "2"
	_, err := in.Run(t.Context(), req)
	wantCode(t, err, cove.Conflict, cove.ReasonKeyReused)
	// A request that failed may be tried again.
	req = cove.CodeRequest{Context: "mine", Language: "calc", Code: "1", IdempotencyKey: "other"}
	if _, err := in.Run(t.Context(), req); cove.CodeOf(err) != cove.NotFound {
		t.Fatalf("code for no context is %v", err)
	}
	if _, err := in.Open(t.Context(), cove.ContextSpec{Name: "mine", Language: "calc"}); err != nil {
		t.Fatal(err)
	}
	if r, err := in.Run(t.Context(), req); err != nil || r.Count != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCodeOnceBeyondARestart: where the interpreter ended with the server, it is not known
// what became of the code.
func TestCodeOnceBeyondARestart(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	s := mustOpen(t, e.As(boss), cove.Spec{})
	req := cove.CodeRequest{Language: "calc", Code: "1", IdempotencyKey: "k"}
	if _, err := e.As(boss).Contexts(s.ID).Run(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	w.shut(e, w.provider)
	_, err := w.open().As(boss).Contexts(s.ID).Run(t.Context(), req)
	wantCode(t, err, cove.Conflict, cove.ReasonOutcomeUnknown)
}
