package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
)

func dataTrips() map[cove.Verb]trip {
	run := filled[cove.RunRequest]()
	look := cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 'é'", Dataset: "d", Files: []cove.RunFile{{Name: "a", Path: "a b.csv"}}, Session: id, Provider: "p"}
	runs := cove.RunFilter{Owner: "o&x", Thread: "t", State: cove.RunFailed, Before: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), After: numbered(1), Newest: true}
	asked := runs
	asked.Limit = 501
	rest := func(result any) {
		switch all := result.(type) {
		case *[]cove.Run:
			*all = (*all)[1:] // before the cursor
		case *[]cove.Dataset:
			*all = (*all)[1:]
		case *[]cove.Message:
			*all = (*all)[1:]
		}
	}
	chat := filled[cove.ChatRequest]()
	return map[cove.Verb]trip{
		cove.RunSubmit:  {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Runs().Submit(ctx, run)) }, args(run), nil},
		cove.RunGet:     {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Runs().Get(ctx, "run")) }, args(cove.ID("run")), nil},
		cove.RunWait:    {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Runs().Wait(ctx, "run")) }, args(cove.ID("run")), nil},
		cove.RunDelete:  {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Runs().Delete(ctx, "run")) }, args(cove.ID("run")), nil},
		cove.RunAnalyze: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Runs().Analyze(ctx, look)) }, args(look), nil},
		cove.RunList:    {func(ctx ctxt, p cove.Platform) ([]any, error) { return listOf(p.Runs().List(ctx, runs)) }, args(asked), rest},

		cove.DatasetList: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return listOf(p.Datasets().List(ctx, cove.DatasetFilter{After: "000001"}))
		}, args(cove.DatasetFilter{After: "000001", Limit: 501}), rest},
		cove.DatasetSchema: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Datasets().Schema(ctx, "a/b ..")) }, args("a/b .."), nil},

		cove.TemplateList: {func(ctx ctxt, p cove.Platform) ([]any, error) { return list(p.Templates().List(ctx)) }, args(), nil},
		cove.TemplateBuild: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Templates().Build(ctx, cove.TemplateRequest{Name: "a.b-c", Shared: true, Files: strings.NewReader("a tar")}))
		}, args("a.b-c", true, "a tar"), nil},
		cove.TemplateTag: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Templates().Tag(ctx, "a/b ..", "c", true))
		}, args("a/b ..", "c", true), nil},
		cove.TemplateDelete: {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Templates().Delete(ctx, "a?b", true)) }, args("a?b", true), nil},

		cove.ChatSend: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Chats().Send(ctx, chat)) }, args(chat), nil},
		cove.ChatMessages: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return listOf(p.Chats().Messages(ctx, cove.MessageFilter{Thread: "a/b?", After: numbered(1)}))
		}, args(cove.MessageFilter{Thread: "a/b?", After: numbered(1), Limit: 501}), rest},
		cove.ChatDelete: {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Chats().Delete(ctx, "..")) }, args(".."), nil},
	}
}

const question = `{"query_type":"sql","sql":"SELECT 1"}`

// TestRunsWait: a run is answered when it has finished, unless it is to go on by
// itself; one that failed is an answer too.
func TestRunsWait(t *testing.T) {
	r := serve(t)
	r.fake.answer = func(context.Context, cove.ID) (*cove.Run, error) {
		return &cove.Run{ID: "r", State: cove.RunFailed, Answer: &cove.RunAnswer{Status: "timeout", Error: &cove.RunError{Type: cove.RunTimeout, Message: "too slow"}}}, nil
	}
	if a := r.send("POST", "/api/runs", question); a.status != 200 || !strings.Contains(a.body, `"status":"timeout"`) || !strings.Contains(a.body, `"error":{"type":"RUNNER_TIMEOUT"`) {
		t.Errorf("a run that failed: %d %s", a.status, a.body)
	}
	if a := r.send("POST", "/api/runs", `{"query_type":"sql","sql":"SELECT 1","async":true}`); a.status != 202 || !strings.Contains(a.body, `"status":"running"`) {
		t.Errorf("a run that goes on by itself: %d %s", a.status, a.body)
	}
}

// TestRunsEndWithTheirCaller: nobody will ask for the answer of a run whose caller
// has gone, unless a key or async says so.
func TestRunsEndWithTheirCaller(t *testing.T) {
	for name, c := range map[string]struct {
		header []string
		ends   bool
	}{"plain": {nil, true}, "with a key": {[]string{"Idempotency-Key", "k"}, false}} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			r := serve(t, func(c *httpapi.Config) { c.End = func(context.Context, httpapi.Ending) { close(over) } })
			waits, deleted := make(chan struct{}), make(chan cove.ID, 1)
			r.fake.answer = func(ctx context.Context, _ cove.ID) (*cove.Run, error) {
				close(waits)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			r.fake.gone = func(id cove.ID) error { deleted <- id; return errors.New("gone already") }
			ctx, leave := context.WithCancel(t.Context())
			go func() { <-waits; leave() }()
			resp, err := r.server.Client().Do(r.request("POST", "/api/runs", strings.NewReader(question), c.header...).WithContext(ctx))
			if err == nil {
				_ = resp.Body.Close()
				t.Fatalf("it was answered with %d", resp.StatusCode)
			}
			<-over
			if ended := len(deleted) == 1; ended != c.ends {
				t.Errorf("the run was ended: %t", ended)
			}
		})
	}
}

func TestInvalidRunsHaveAType(t *testing.T) {
	r := serve(t)
	for name, body := range map[string]string{
		"not JSON": `{`, "unknown field": `{"x":1}`, "out of range": `{"query_type":"sql","sql":"x","max_rows":0}`,
	} {
		if a := r.send("POST", "/api/runs", body); a.status != 400 || !strings.Contains(a.body, `"error_type":"VALIDATION_ERROR"`) || !strings.Contains(a.body, `"code":"invalid"`) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	r.fake.fail = cove.RunRequest{}.Validate()
	if a := r.send("POST", "/api/runs", question); a.status != 400 || !strings.Contains(a.body, `"error_type":"VALIDATION_ERROR"`) {
		t.Errorf("of the platform: %d %s", a.status, a.body)
	}
	r.fake.fail = cove.Errorf(cove.Exhausted, "no room")
	if a := r.send("POST", "/api/runs", question); a.status != 429 || strings.Contains(a.body, "error_type") {
		t.Errorf("no room: %d %s", a.status, a.body)
	}
	if a := serve(t).send("POST", "/api/analyze", `{"sql":"x","max_rows":1}`); a.status != 400 {
		t.Errorf("a look with bounds: %d %s", a.status, a.body)
	}
}

func TestStatusOfRuns(t *testing.T) {
	r := serve(t)
	r.fake.fail = cove.Errorf(cove.NotFound, "there is no run")
	if a := r.send("GET", "/api/runs/nothing/status", ""); a.status != 200 || strings.TrimSpace(a.body) != `{"run_id":"nothing","status":"not_found"}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.fake.fail = cove.Errorf(cove.Denied, "no")
	if a := r.send("GET", "/api/runs/nothing/status", ""); a.status != 403 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.send("GET", "/api/runs?before=yesterday", ""); a.status != 400 || !strings.Contains(a.body, "before") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestLargeRunsComeInMorePages: the answers of a thousand runs do not fit into
// the memory of who lists them.
func TestLargeRunsComeInMorePages(t *testing.T) {
	r := serve(t)
	row := json.RawMessage(`["` + strings.Repeat("x", 1<<20) + `"]`)
	r.fake.runs = func(f cove.RunFilter) iter.Seq2[*cove.Run, error] {
		return func(yield func(*cove.Run, error) bool) {
			for n := 1; n <= 10; n++ {
				run := &cove.Run{ID: numbered(n), Answer: &cove.RunAnswer{Status: "success", Rows: []json.RawMessage{row}}}
				if run.ID > f.After && !yield(run, nil) {
					return
				}
			}
		}
	}
	a := r.send("GET", "/api/runs?limit=10", "")
	if a.status != 200 || len(a.body) > 8<<20 || !strings.Contains(a.body, `"next_cursor":"000003"`) {
		t.Errorf("%d with %d bytes that end in %s", a.status, len(a.body), a.body[len(a.body)-60:])
	}
	if n, err := length(r.client.Runs().List(t.Context(), cove.RunFilter{})); n != 10 || err != nil {
		t.Errorf("%d runs came, %v", n, err)
	}
	if n, err := length(r.client.Runs().List(t.Context(), cove.RunFilter{Limit: 7})); n != 7 || err != nil {
		t.Errorf("%d runs came, %v", n, err)
	}
}

func steps() []cove.ChatEvent {
	return []cove.ChatEvent{
		{Kind: cove.ChatToken, Text: "so\nmany"},
		{Kind: cove.ChatTool, Tool: "run_sql", Text: `{"sql":"SELECT 1"}`},
		{Kind: cove.ChatRun, Run: &cove.Run{ID: "r", State: cove.RunSucceeded, Answer: &cove.RunAnswer{Status: "success", Columns: []string{"a"}, Rows: []json.RawMessage{json.RawMessage(`[1]`)}}}},
		{Kind: cove.ChatBlocked, Error: &cove.RunError{Type: cove.RunSQLPolicy, Message: "no", Refusal: &cove.Refusal{Rule: "sql.table", Line: 1, Column: 2}}},
	}
}

// TestChatSteps: every step comes as it happens, and an unknown one does not.
func TestChatSteps(t *testing.T) {
	r := serve(t)
	r.fake.chat = func(_ context.Context, req cove.ChatRequest) (*cove.ChatAnswer, error) {
		for _, s := range append(steps(), cove.ChatEvent{Kind: "done", Text: "forged"}) {
			req.OnEvent(s)
		}
		return &cove.ChatAnswer{Thread: "t", Message: cove.Message{Text: "one", Role: cove.RoleAssistant}, Rounds: 2, Stopped: cove.ChatRounds}, nil
	}
	a := r.send("POST", "/api/chat/stream", `{"message":"how many?"}`)
	if a.status != 200 || strings.Count(a.body, "event: done\n") != 1 || strings.Contains(a.body, "forged") || a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%d %s", a.status, a.body)
	}
	var got []cove.ChatEvent
	answer, err := r.client.Chats().Send(t.Context(), cove.ChatRequest{Message: "how many?", OnEvent: func(e cove.ChatEvent) { got = append(got, e) }})
	if err != nil || answer.Message.Text != "one" || answer.Stopped != cove.ChatRounds || answer.Rounds != 2 {
		t.Errorf("the answer is %+v, %v", answer, err)
	}
	if diff := cmp.Diff(steps(), got, same); diff != "" {
		t.Errorf("-told +got:\n%s", diff)
	}
}

// TestChatFailsOnTheWay: an error after the first step is the last event.
func TestChatFailsOnTheWay(t *testing.T) {
	r := serve(t)
	first := true
	r.fake.chat = func(_ context.Context, req cove.ChatRequest) (*cove.ChatAnswer, error) {
		if req.OnEvent != nil && !first {
			req.OnEvent(cove.ChatEvent{Kind: cove.ChatToken, Text: "so"})
		}
		return nil, cove.Errorf(cove.Unavailable, "the model has gone").Remedy("try again")
	}
	if a := r.send("POST", "/api/chat/stream", `{"message":"x"}`); a.status != 503 {
		t.Errorf("before the first step: %d %s", a.status, a.body)
	}
	first = false
	if a := r.send("POST", "/api/chat/stream", `{"message":"x"}`); a.status != 200 || !strings.Contains(a.body, "event: error\n") || strings.Contains(a.body, "event: done") {
		t.Errorf("after it: %d %s", a.status, a.body)
	}
	tokens := 0
	_, err := r.client.Chats().Send(t.Context(), cove.ChatRequest{Message: "x", OnEvent: func(cove.ChatEvent) { tokens++ }})
	if !errors.Is(err, cove.Unavailable) || cove.RemedyOf(err) != "try again" || tokens != 1 {
		t.Errorf("%v after %d steps", err, tokens)
	}
	for _, body := range []string{`{`, `{"message":"x","max_rows":0}`} {
		for _, path := range []string{"/api/chat", "/api/chat/stream"} {
			if a := r.send("POST", path, body); a.status != 400 {
				t.Errorf("%s %s: %d %s", path, body, a.status, a.body)
			}
		}
	}
}

// TestChatStreamIsCut: a client that goes away ends what it waited for.
func TestChatStreamIsCut(t *testing.T) {
	r := serve(t, func(c *httpapi.Config) { c.OpenAfter = time.Millisecond })
	ended := make(chan error, 1)
	r.fake.chat = func(ctx context.Context, req cove.ChatRequest) (*cove.ChatAnswer, error) {
		req.OnEvent(cove.ChatEvent{Kind: cove.ChatToken, Text: "so"})
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	ctx, leave := context.WithCancel(t.Context())
	resp, err := r.server.Client().Do(r.request(http.MethodPost, "/api/chat/stream", strings.NewReader(`{"message":"x"}`)).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	leave()
	if err := <-ended; err == nil {
		t.Error("it went on")
	}
}
