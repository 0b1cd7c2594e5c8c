package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/chat"
	"github.com/cove-sandbox/cove/store/memory"
)

// responder answers with a function.
type responder func(context.Context, cove.Platform, []*cove.Message, cove.ChatRequest) (*cove.ChatAnswer, error)

func (r responder) Respond(ctx context.Context, p cove.Platform, history []*cove.Message, req cove.ChatRequest) (*cove.ChatAnswer, error) {
	return r(ctx, p, history, req)
}

func answering(r responder) func(*engine.Config) {
	return func(c *engine.Config) { c.Responder = r }
}

func said(t *testing.T, p cove.Platform, thread string) []string {
	t.Helper()
	var out []string
	for m, err := range p.Chats().Messages(t.Context(), cove.MessageFilter{Thread: thread}) {
		if cove.CodeOf(err) == cove.NotFound {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(m.Role)+": "+m.Text)
	}
	return out
}

// TestChatHistory: an answer knows the end of its thread, in order, and a full thread
// takes no more.
func TestChatHistory(t *testing.T) {
	var seen []*cove.Message
	w := newWorld(t)
	p := w.open(answering(func(_ context.Context, _ cove.Platform, history []*cove.Message, req cove.ChatRequest) (*cove.ChatAnswer, error) {
		seen = history
		return &cove.ChatAnswer{Message: cove.Message{Text: "answer to " + req.Message}}, nil
	})).As(boss)
	for i := range 15 {
		a, err := p.Chats().Send(t.Context(), cove.ChatRequest{Thread: "t", Message: fmt.Sprint(i)})
		if err != nil || a.Thread != "t" || a.Message.Thread != "t" || a.Message.Owner != "boss" || !a.Message.ID.Valid() {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if len(seen) != 20 || seen[0].Text != "4" || seen[19].Text != "answer to 13" {
		t.Errorf("the last answer knew %d messages, from %q to %q", len(seen), seen[0].Text, seen[19].Text)
	}
	for i := range 470 {
		err := w.store.PutMessage(t.Context(), &cove.Message{ID: cove.ID(fmt.Sprintf("%026d", i)), Tenant: cove.DefaultTenant, Owner: boss.Name, Thread: "t"})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.Chats().Send(t.Context(), cove.ChatRequest{Thread: "t", Message: "more"})
	if cove.CodeOf(err) != cove.Exhausted || cove.RemedyOf(err) != "begin a new thread" {
		t.Errorf("a full thread: %v", err)
	}
}

// TestChatAfterTheClockWentBack: what is said sorts after what was said, whatever the
// clock shows.
func TestChatAfterTheClockWentBack(t *testing.T) {
	w := newWorld(t)
	p := w.open(answering(func(_ context.Context, _ cove.Platform, _ []*cove.Message, req cove.ChatRequest) (*cove.ChatAnswer, error) {
		return &cove.ChatAnswer{Message: cove.Message{Text: "re " + req.Message}}, nil
	})).As(boss)
	future := cove.ID("7zzzzzzzzzzzzzzzzzzzzzzzr0")
	if err := w.store.PutMessage(t.Context(), &cove.Message{ID: future, Tenant: cove.DefaultTenant, Owner: boss.Name, Thread: "t", Role: cove.RoleUser, Text: "0"}); err != nil {
		t.Fatal(err)
	}
	var first *cove.ChatAnswer
	for _, text := range []string{"1", "2", "1"} {
		a, err := p.Chats().Send(t.Context(), cove.ChatRequest{Thread: "t", Message: text, IdempotencyKey: text})
		if err != nil || !a.Message.ID.Valid() {
			t.Fatalf("%+v, %v", a, err)
		}
		if first == nil {
			first = a
		}
		if text == "1" && a.Message.ID != first.Message.ID {
			t.Errorf("sent again, the answer is %+v", a.Message)
		}
	}
	if got := strings.Join(said(t, p, "t"), ", "); got != "user: 0, user: 1, assistant: re 1, user: 2, assistant: re 2" {
		t.Errorf("the thread is %s", got)
	}
}

// TestChatWithoutAnAnswer: it is not kept, and may be sent again with the same key.
func TestChatWithoutAnAnswer(t *testing.T) {
	down := true
	w := newWorld(t)
	p := w.open(answering(func(context.Context, cove.Platform, []*cove.Message, cove.ChatRequest) (*cove.ChatAnswer, error) {
		if down {
			return nil, cove.Errorf(cove.Unavailable, "the model does not answer")
		}
		return &cove.ChatAnswer{Message: cove.Message{Text: "here"}, Model: "m", Rounds: 2, Stopped: cove.ChatLength}, nil
	})).As(boss)
	req := cove.ChatRequest{Thread: "t", Message: "secret question", IdempotencyKey: "k"}
	if _, err := p.Chats().Send(t.Context(), req); cove.CodeOf(err) != cove.Unavailable || said(t, p, "t") != nil {
		t.Errorf("%v, %v", err, said(t, p, "t"))
	}
	down = false
	for range 2 {
		var told string
		req.OnEvent = func(e cove.ChatEvent) { told += e.Text }
		a, err := p.Chats().Send(t.Context(), req)
		if err != nil || a.Model != "m" || a.Rounds != 2 || a.Stopped != cove.ChatLength || a.Message.Text != "here" {
			t.Errorf("%+v, %v", a, err)
		}
		if down && told != "here" {
			t.Errorf("told %q", told)
		}
		down = true
	}
	if got := said(t, p, "t"); len(got) != 2 {
		t.Errorf("the thread is %v", got)
	}
	for ev, err := range w.journal.Events(t.Context(), cove.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(ev); strings.Contains(string(text), "secret question") {
			t.Errorf("the journal has %s", text)
		}
	}
}

// TestChatOnceThroughPolicy: a repeat gets back what was blocked and what was found.
func TestChatOnceThroughPolicy(t *testing.T) {
	c, err := chat.New(chat.Config{Missing: []string{"COVE_MODEL_URL", "COVE_MODEL"}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	p := w.open(func(cfg *engine.Config) { cfg.Responder, cfg.Runners = c, map[string]cove.Runner{"": strict{}} }).As(boss)
	for range 2 {
		a, err := p.Chats().Send(t.Context(), cove.ChatRequest{Message: "SQL: COPY", IdempotencyKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Blocked) != 1 || a.Blocked[0].Refusal.Rule != "sql.select_only" || a.Result == nil || a.Result.Request.Thread != a.Thread || a.Query != "COPY" || a.Message.Error == nil {
			t.Errorf("%+v", a)
		}
	}
	if got, err := p.Runs().Get(t.Context(), cove.NewID()); err == nil {
		t.Errorf("%+v", got)
	}
	_, err = p.Chats().Send(t.Context(), cove.ChatRequest{Message: "How many?"})
	if cove.CodeOf(err) != cove.Unsupported || cove.MessageOf(err) != "natural language needs a model, and COVE_MODEL_URL and COVE_MODEL are not set" {
		t.Errorf("%v", err)
	}
	few := cove.Principal{Name: "few", Scopes: []cove.Scope{cove.ScopeRead}}
	if _, err := w.open().As(few).Chats().Send(t.Context(), cove.ChatRequest{Message: "SQL: SELECT 1"}); cove.CodeOf(err) != cove.Denied {
		t.Errorf("without the scope: %v", err)
	}
}

// strict refuses every question.
type strict struct{ cove.Runner }

func (strict) Run(context.Context, cove.RunHost, cove.RunQuestion) (*cove.RunAnswer, *cove.RunDecision, error) {
	refusal := &cove.Refusal{Rule: "sql.select_only", Reason: "only SELECT", Word: "COPY", Line: 1, Column: 1}
	return &cove.RunAnswer{Status: "error", Error: &cove.RunError{Type: cove.RunSQLPolicy, Message: "only SELECT is allowed", Refusal: refusal}},
		&cove.RunDecision{Refusal: refusal}, nil
}

// TestChatsInTurn: one message at a time in a thread, others at once; whoever waits may
// leave; a thread that is being answered is deleted after that; and there is a bound.
func TestChatsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		busy, most := map[string]int{}, 0
		gate := make(chan struct{})
		p := openEngine(t, answering(func(_ context.Context, _ cove.Platform, _ []*cove.Message, req cove.ChatRequest) (*cove.ChatAnswer, error) {
			mu.Lock()
			busy[req.Thread]++
			most = max(most, busy[req.Thread])
			mu.Unlock()
			<-gate
			mu.Lock()
			busy[req.Thread]--
			mu.Unlock()
			return &cove.ChatAnswer{Message: cove.Message{Text: "ok"}}, nil
		})).As(boss)
		send := func(ctx context.Context, thread string) error {
			_, err := p.Chats().Send(ctx, cove.ChatRequest{Thread: thread, Message: "go"})
			return err
		}
		var wg sync.WaitGroup
		for i := range 63 {
			wg.Go(func() {
				if err := send(t.Context(), []string{"a", "b", ""}[i%3]); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- send(ctx, "a") }()
		synctest.Wait()
		if err := send(t.Context(), "c"); cove.CodeOf(err) != cove.Exhausted {
			t.Errorf("one too many: %v", err)
		}
		leave()
		if err := <-left; cove.CodeOf(err) != cove.Canceled {
			t.Errorf("who left: %v", err)
		}
		close(gate)
		wg.Wait()
		if most != 1 || len(said(t, p, "a")) != 42 || len(said(t, p, "b")) != 42 {
			t.Errorf("%d at once; %d and %d messages", most, len(said(t, p, "a")), len(said(t, p, "b")))
		}
	})
}

func TestChatDeleteWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := openEngine(t, answering(func(context.Context, cove.Platform, []*cove.Message, cove.ChatRequest) (*cove.ChatAnswer, error) {
			<-gate
			return &cove.ChatAnswer{Message: cove.Message{Text: "ok"}}, nil
		})).As(boss)
		sent, deleted := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := p.Chats().Send(t.Context(), cove.ChatRequest{Thread: "a", Message: "go"})
			sent <- err
		}()
		synctest.Wait()
		go func() { deleted <- p.Chats().Delete(t.Context(), "a") }()
		synctest.Wait()
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := p.Chats().Delete(gone, "a"); cove.CodeOf(err) != cove.Canceled {
			t.Errorf("who left: %v", err)
		}
		close(gate)
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if err := <-deleted; err != nil {
			t.Error(err)
		}
		if got := said(t, p, "a"); got != nil {
			t.Errorf("left are %v", got)
		}
	})
}

// brokenMessages is a store that cannot keep messages, or not read them.
type brokenMessages struct {
	*memory.Store

	put, list bool
}

func (s brokenMessages) PutMessage(ctx context.Context, m *cove.Message) error {
	if s.put {
		return cove.Errorf(cove.Unavailable, "the disk is full")
	}
	return s.Store.PutMessage(ctx, m)
}

func (s brokenMessages) Messages(ctx context.Context, f cove.MessageFilter) iter.Seq2[*cove.Message, error] {
	if s.list {
		return func(yield func(*cove.Message, error) bool) {
			yield(nil, cove.Errorf(cove.Unavailable, "the disk is broken"))
		}
	}
	return s.Store.Messages(ctx, f)
}

func TestChatStoreFaults(t *testing.T) {
	for _, broken := range []brokenMessages{{put: true}, {list: true}} {
		broken.Store = memory.New()
		p := openEngine(t, func(c *engine.Config) { c.Store = broken }).As(boss)
		for range 2 {
			_, err := p.Chats().Send(t.Context(), cove.ChatRequest{Thread: "t", Message: "hello", IdempotencyKey: "k"})
			if cove.CodeOf(err) != cove.Unavailable {
				t.Errorf("%+v: %v", broken, err)
			}
		}
		if err := p.Chats().Delete(t.Context(), "t"); broken.list != (cove.CodeOf(err) == cove.Unavailable) {
			t.Errorf("%+v: delete: %v", broken, err)
		}
	}
	p := openEngine(t, func(c *engine.Config) { c.Responder = nil }).As(boss)
	if _, err := p.Chats().Send(t.Context(), cove.ChatRequest{Message: "hello"}); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("%v", err)
	}
	for _, err := range p.Chats().Messages(t.Context(), cove.MessageFilter{}) {
		if cove.CodeOf(err) != cove.Invalid {
			t.Errorf("messages of no thread: %v", err)
		}
	}
	if err := p.Chats().Delete(t.Context(), ""); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("delete of no thread: %v", err)
	}
}
