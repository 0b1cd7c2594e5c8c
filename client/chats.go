package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type chats struct{ c *Client }

// Send implements [cove.Chats].
func (c chats) Send(ctx context.Context, req cove.ChatRequest) (*cove.ChatAnswer, error) {
	a := ask{method: http.MethodPost, path: path{"/api/chat"}, body: wire.ChatRequestOf(req), header: once(req.IdempotencyKey)}
	if req.OnEvent == nil {
		w, err := get[wire.ChatAnswer](ctx, c.c, a)
		if err != nil {
			return nil, err
		}
		return c.answer(w)
	}
	a.path = path{"/api/chat/stream"}
	for f, err := range c.c.follow(ctx, a, wire.OnDone) {
		if err != nil {
			return nil, err
		}
		if f.name == wire.OnDone {
			w, err := parse[wire.ChatAnswer](c.c, f)
			if err != nil {
				return nil, err
			}
			return c.answer(w)
		}
		if err := c.step(f, req.OnEvent); err != nil {
			return nil, err
		}
	}
	return nil, nil //nolint:nilnil // follow ends with an answer or an error
}

func (c chats) answer(w wire.ChatAnswer) (*cove.ChatAnswer, error) {
	a, err := w.Cove()
	if err != nil {
		return nil, c.c.strange(err, "chat")
	}
	return a, nil
}

// step hands a step towards the answer on; other events are left alone.
func (c chats) step(f frame, tell func(cove.ChatEvent)) error {
	switch kind := cove.ChatEventKind(f.name); kind {
	case cove.ChatToken, cove.ChatTool, cove.ChatRun, cove.ChatBlocked:
		w, err := parse[wire.ChatEvent](c.c, f)
		if err != nil {
			return err
		}
		e, err := w.Cove(kind)
		if err != nil {
			return c.c.strange(err, "run")
		}
		tell(e)
	}
	return nil
}

// Messages implements [cove.Chats].
func (c chats) Messages(ctx context.Context, f cove.MessageFilter) iter.Seq2[*cove.Message, error] {
	a := ask{method: http.MethodGet, path: path{"/api/threads/", f.Thread, "/messages"}, query: values("cursor", string(f.After))}
	return list(ctx, c.c, a, f.Limit, plain(wire.Message.Cove))
}

// Delete implements [cove.Chats].
func (c chats) Delete(ctx context.Context, thread string) error {
	return c.c.tell(ctx, ask{method: http.MethodDelete, path: path{"/api/threads/", thread, "/messages"}})
}
