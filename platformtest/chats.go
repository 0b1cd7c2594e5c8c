package platformtest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

// chatThreads: a thread has what was said in it, in order, and is forgotten as a whole.
func chatThreads(t *testing.T, s *suite) {
	r, p, d := s.data(t)
	first, err := p.Chats().Send(r.ctx, cove.ChatRequest{Message: d.Message, IdempotencyKey: "first"})
	r.must(err, "send without a thread")
	if first.Thread == "" {
		t.Fatal("a new thread has no name")
	}
	again, err := p.Chats().Send(r.ctx, cove.ChatRequest{Message: d.Message, IdempotencyKey: "first"})
	r.must(err, "send the same with the same key")
	if again.Thread != first.Thread || again.Message.ID != first.Message.ID || again.Result == nil || again.Result.ID != first.Result.ID || again.Query != first.Query {
		t.Errorf("a message that was sent twice has the answers %+v and %+v", first, again)
	}
	for range 4 {
		_, err = p.Chats().Send(r.ctx, cove.ChatRequest{Thread: first.Thread, Message: d.Message})
		r.must(err, "send into the thread")
	}
	said := all(r, p.Chats().Messages(r.ctx, cove.MessageFilter{Thread: first.Thread}))
	if len(said) != 10 {
		t.Fatalf("5 messages and their answers are %+v", said)
	}
	same(t, "the first answer in the thread", *said[1], first.Message)
	last := cove.ID("")
	for i, m := range said {
		role, text := cove.RoleUser, d.Message
		if i%2 == 1 {
			role, text = cove.RoleAssistant, first.Message.Text
		}
		if m.ID <= last || m.Role != role || m.Text != text || m.Thread != first.Thread || m.Tenant != "acme" || m.Owner == "" || m.CreatedAt.IsZero() {
			t.Errorf("message %d after %q is %+v", i, last, m)
		}
		if role == cove.RoleAssistant && (len(m.Runs) != 1 || m.Query != first.Query || m.Type != first.Type) {
			t.Errorf("answer %d is %+v", i, m)
		}
		last = m.ID
	}
	rest := all(r, p.Chats().Messages(r.ctx, cove.MessageFilter{Thread: first.Thread, After: said[2].ID}))
	same(t, "what comes after the third message", rest, said[3:])
	few := all(r, p.Chats().Messages(r.ctx, cove.MessageFilter{Thread: first.Thread, Limit: 3}))
	same(t, "three messages", few, said[:3])
	if rest := all(r, p.Chats().Messages(r.ctx, cove.MessageFilter{Thread: first.Thread, After: last})); len(rest) != 0 {
		t.Errorf("after the last message come %+v", rest)
	}
	r.must(p.Chats().Delete(r.ctx, first.Thread), "delete")
	_, err = collect(p.Chats().Messages(r.ctx, cove.MessageFilter{Thread: first.Thread}))
	wantCode(t, err, cove.NotFound)
	wantCode(t, p.Chats().Delete(r.ctx, first.Thread), cove.NotFound)
}

// chatThreadsOfOthers: a thread is its owner's. Another of the same tenant and one of
// the same name elsewhere find nothing, and one of theirs has nothing to do with it.
func chatThreadsOfOthers(t *testing.T, s *suite) {
	r, p, d := s.data(t)
	mine, err := p.Chats().Send(r.ctx, cove.ChatRequest{Thread: "ours", Message: d.Message})
	r.must(err, "send")
	for who, other := range map[string]cove.Platform{
		"another of the tenant": r.as(cove.Principal{Name: "neighbour", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRuns}}),
		"another tenant":        r.user("globex"),
	} {
		_, err := collect(other.Chats().Messages(r.ctx, cove.MessageFilter{Thread: "ours"}))
		wantCode(t, err, cove.NotFound)
		_, err = collect(other.Chats().Messages(r.ctx, cove.MessageFilter{Thread: "ours", Tenant: "acme", Owner: mine.Message.Owner}))
		wantCode(t, err, cove.NotFound)
		wantCode(t, other.Chats().Delete(r.ctx, "ours"), cove.NotFound)
		_, err = other.Chats().Send(r.ctx, cove.ChatRequest{Thread: "ours", Message: d.Message})
		r.must(err, "send into a thread of the same name")
		if said := all(r, other.Chats().Messages(r.ctx, cove.MessageFilter{Thread: "ours"})); len(said) != 2 {
			t.Errorf("%s reads %+v", who, said)
		}
		r.must(other.Chats().Delete(r.ctx, "ours"), "delete")
	}
	if said := all(r, p.Chats().Messages(r.ctx, cove.MessageFilter{Thread: "ours"})); len(said) != 2 || said[1].ID != mine.Message.ID {
		t.Errorf("the thread is %+v", said)
	}
}
