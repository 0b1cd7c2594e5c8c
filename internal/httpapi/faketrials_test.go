package httpapi_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (s fakeSessions) SetNetwork(_ context.Context, id cove.ID, n cove.Network) (*cove.Session, error) {
	return give[cove.Session](s.fake, cove.SessionSetNetwork, args(id, n))
}

func (s fakeSessions) Connections(_ context.Context, id cove.ID, after int64) iter.Seq2[cove.Connection, error] {
	return limited(after, 0, yields(s.fake, cove.SessionConnections, args(id, after), func(v *cove.Connection, n int) { v.Number = int64(n) }),
		func(v cove.Connection) int64 { return v.Number })
}

func (f *fake) Trials(id cove.ID) cove.Trials { return fakeTrials{f, id} }

type fakeTrials struct {
	*fake

	id cove.ID
}

func (t fakeTrials) Run(_ context.Context, req cove.TrialRequest) (*cove.TrialResult, error) {
	stdin := drained(req.Stdin)
	req.Stdin = nil
	if req.OnOutput != nil && t.fail == nil {
		req.OnOutput(cove.Chunk{Stream: cove.Stdout, Data: []byte("out")})
	}
	return give[cove.TrialResult](t.fake, cove.TrialRun, args(t.id, req.Then, plainExec(req.ExecRequest), stdin))
}

func (t fakeTrials) Get(context.Context) (*cove.TrialResult, error) {
	return give[cove.TrialResult](t.fake, cove.TrialGet, args(t.id))
}

func (t fakeTrials) Before(_ context.Context, name string) ([]byte, error) {
	if err := t.note(cove.TrialBefore, args(t.id, name), "before\xff"); err != nil {
		return nil, err
	}
	return []byte("before\xff"), nil
}

func (t fakeTrials) Commit(context.Context) error  { return t.note(cove.TrialCommit, args(t.id)) }
func (t fakeTrials) Discard(context.Context) error { return t.note(cove.TrialDiscard, args(t.id)) }

func trialTrips() map[cove.Verb]trip {
	const name = "a dir/ü&\xff.txt"
	network := filled[cove.Network]()
	return map[cove.Verb]trip{
		cove.SessionSetNetwork: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Sessions().SetNetwork(ctx, id, network))
		}, args(id, network), nil},
		cove.SessionConnections: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return list(p.Sessions().Connections(ctx, id, 0))
		}, args(id, int64(0)), nil},
		cove.TrialRun: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Trials(id).Run(ctx, cove.TrialRequest{ExecRequest: withStdin(exec(), "in\xff"), Then: cove.ThenCommitOnSuccess}))
		}, args(id, cove.ThenCommitOnSuccess, exec(), "in\xff"), nil},
		cove.TrialGet: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Trials(id).Get(ctx)) }, args(id), nil},
		cove.TrialBefore: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			b, err := p.Trials(id).Before(ctx, name)
			if err != nil {
				return nil, err
			}
			return []any{string(b)}, nil
		}, args(id, name), nil},
		cove.TrialCommit:  {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Trials(id).Commit(ctx)) }, args(id), nil},
		cove.TrialDiscard: {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Trials(id).Discard(ctx)) }, args(id), nil},
	}
}

// TestTrialAsItComes: with a reader that may block, and with somebody who wants
// the output at once, the answer is a stream.
func TestTrialAsItComes(t *testing.T) {
	for name, req := range map[string]cove.TrialRequest{
		"output": {ExecRequest: cove.ExecRequest{Line: "x"}},
		"input":  {ExecRequest: cove.ExecRequest{Line: "x", Stdin: struct{ *strings.Reader }{strings.NewReader("typed")}}, Then: cove.ThenDiscard},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t)
			got := ""
			req.OnOutput = func(c cove.Chunk) { got += string(c.Data) }
			out, err := r.client.Trials(id).Run(t.Context(), req)
			if err != nil || out == nil || !out.Open || got != "out" {
				t.Fatalf("%+v with output %q, %v", out, got, err)
			}
			if call := r.fake.seen(cove.TrialRun)[0]; req.Stdin != nil && call.Args[3] != "typed" || call.Args[1] != req.Then {
				t.Errorf("the platform was asked with %+v", call.Args)
			}
			r.fake.fail = cove.Errorf(cove.Conflict, "not now")
			if _, err := r.client.Trials(id).Run(t.Context(), req); cove.CodeOf(err) != cove.Conflict {
				t.Errorf("a refusal came back as %v", err)
			}
		})
	}
}

func TestTrialRequestsThatAreRefused(t *testing.T) {
	r := serve(t)
	const at = "/api/sandboxes/x/trial"
	for body, field := range map[string]string{
		`{"command":"x","background":true}`:                 "background",
		`{"command":"x","then":7}`:                          "then",
		`{"command":"x","stdin":"a","stdin_base64":"YQ=="}`: "stdin",
		`{"command":"x","when":"now"}`:                      "when",
		`{"command":"` + strings.Repeat("x", 9<<20) + `"}`:  "",
	} {
		if a := r.send("POST", at, body); a.status != 400 && a.status != 413 || !strings.Contains(a.body, field) {
			t.Errorf("%.60s: %d %.200s", body, a.status, a.body)
		}
	}
	for _, query := range []string{"after=-1", "after=x", "cursor=x", "cursor=-1", "limit=0", "what=1"} {
		if a := r.send("GET", "/api/sandboxes/x/connections?"+query, ""); a.status != 400 {
			t.Errorf("%s: %d %.200s", query, a.status, a.body)
		}
	}
	for _, body := range []string{`[]`, `{"mode":1}`, `{"mode":"none","extra":1}`} {
		if a := r.send("PUT", "/api/sandboxes/x/network", body); a.status != 400 {
			t.Errorf("%s: %d %.200s", body, a.status, a.body)
		}
	}
	if _, err := r.client.Trials(id).Run(t.Context(), cove.TrialRequest{ExecRequest: cove.ExecRequest{Line: "x", Argv: []string{"y"}}}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("two commands: %v", err)
	}
	if w := wire.TrialOf(&cove.TrialResult{}); w.Changes == nil || w.Execution != nil || w.Cove().Execution != nil {
		t.Errorf("an empty trial is %+v", w)
	}
}
