package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func chatRoutes() []route {
	const messages = "/api/threads/{thread}/messages"
	return []route{
		{
			method: http.MethodPost, pattern: "/api/chat", needs: []cove.Verb{cove.ChatSend}, summary: "Say something about data and get the answer, with the query, its result and what was blocked",
			limit: questionLimit, deed: post(http.StatusOK, (*call).chat), headers: []header{onceHeader},
		},
		{
			method: http.MethodPost, pattern: "/api/chat/stream", needs: []cove.Verb{cove.ChatSend}, summary: "The same as it happens: a ChatEvent for each step, then the ChatAnswer",
			limit: questionLimit, events: "token, tool_call, run, blocked, done", headers: []header{onceHeader},
			deed: deed{body: reflect.TypeFor[wire.ChatRequest](), status: http.StatusOK, do: (*call).chatStream},
		},
		{method: http.MethodGet, pattern: messages, summary: "List the messages of a thread by id", deed: get((*call).listMessages), query: pageParams},
		{method: http.MethodDelete, pattern: messages, summary: "Forget a thread", deed: act((*call).deleteThread)},
	}
}

// chatRequest is the platform's own form of a message.
func (c *call) chatRequest(w wire.ChatRequest) (cove.ChatRequest, error) {
	req, err := w.Cove()
	req.IdempotencyKey = c.idempotencyKey()
	return req, err
}

func (c *call) chat(w wire.ChatRequest) (none wire.ChatAnswer, err error) {
	req, err := c.chatRequest(w)
	if err != nil {
		return none, err
	}
	a, err := c.platform.Chats().Send(c.r.Context(), req)
	if err != nil {
		return none, err
	}
	return wire.ChatAnswerOf(a), nil
}

func (c *call) chatStream() error {
	w, err := decode[wire.ChatRequest](c)
	if err != nil {
		return err
	}
	req, err := c.chatRequest(w)
	if err != nil {
		return err
	}
	return c.stream(func(ctx context.Context, e *events) error {
		req.OnEvent = func(step cove.ChatEvent) {
			switch step.Kind {
			case cove.ChatToken, cove.ChatTool, cove.ChatRun, cove.ChatBlocked:
				_ = e.send(string(step.Kind), "", wire.ChatEventOf(step)) // what a run holds was JSON before
			}
		}
		a, err := c.platform.Chats().Send(ctx, req)
		if err != nil {
			return err
		}
		return e.send(wire.OnDone, "", wire.ChatAnswerOf(a))
	})
}

func (c *call) thread() string { return c.r.PathValue("thread") }

func (c *call) listMessages() (wire.Page[wire.Message], error) {
	limit := c.pageSize()
	list := c.platform.Chats().Messages(c.r.Context(), cove.MessageFilter{Thread: c.thread(), After: cove.ID(c.query.text("cursor")), Limit: limit + 1})
	return page(list, limit, wire.MessageOf, func(m *cove.Message) string { return string(m.ID) })
}

func (c *call) deleteThread() error { return c.platform.Chats().Delete(c.r.Context(), c.thread()) }
