package engine

import (
	"context"
	"iter"
	"time"

	"github.com/cove-sandbox/cove"
)

// chats is the part of the platform that talks about data. What a message leads to
// takes the same road as if its sender had asked for it: the responder gets the
// sender's own view.
type chats struct{ v view }

// Bounds on a thread.
const (
	maxThread  = 500 // messages
	maxHistory = 20  // of them, which the next answer knows
)

// Send implements [cove.Chats].
func (c chats) Send(ctx context.Context, req cove.ChatRequest) (*cove.ChatAnswer, error) {
	e := c.v.e
	a := action{Action: cove.Action{Verb: cove.ChatSend}, data: e.contentOf(req.Message)}
	return act(ctx, c.v, a, func(ctx context.Context, st *step) (*cove.ChatAnswer, error) {
		if err := req.Validate(); err != nil {
			return nil, err
		}
		if e.cfg.Responder == nil {
			return nil, cove.Errorf(cove.Unsupported, "this build answers no chats")
		}
		if err := e.mayBegin(ctx, c.v.p.Tenant); err != nil {
			return nil, err
		}
		release, err := c.hold(ctx, req.Thread)
		if err != nil {
			return nil, err
		}
		defer release()
		what := req
		what.OnEvent = nil
		out, err := once(ctx, e, c.v.p, deed[*cove.ChatAnswer]{
			key: req.IdempotencyKey, verb: cove.ChatSend, what: what,
			do: func(id cove.ID) (*cove.ChatAnswer, cove.ID, error) {
				out, err := c.answer(ctx, id, req)
				if err != nil {
					return nil, "", err
				}
				return out, out.Message.ID, nil
			},
			again: func(id cove.ID) (*cove.ChatAnswer, error) { return c.again(ctx, id, req) },
		})
		if err == nil {
			st.outcome.Data = madeSession(out.Message.ID)
		}
		return out, err
	})
}

// answer has a message answered, and keeps both. A message without an answer is not
// kept: who sent it has it, and sends it again. A new thread has the name that its
// first answer is found by.
func (c chats) answer(ctx context.Context, id cove.ID, req cove.ChatRequest) (*cove.ChatAnswer, error) {
	asked := cove.Message{Tenant: c.v.p.Tenant, Owner: c.v.p.Name, Role: cove.RoleUser, Text: req.Message, CreatedAt: time.Now()}
	var history []*cove.Message
	if req.Thread == "" {
		req.Thread = string(id)
	} else {
		var err error
		if history, err = c.history(ctx, req.Thread); err != nil {
			return nil, err
		}
	}
	asked.Thread = req.Thread
	out, err := c.v.e.cfg.Responder.Respond(ctx, c.v, history, req)
	if err != nil {
		return nil, err
	}
	said := &out.Message
	asked.ID, said.ID = inTurn(history, id)
	out.Thread, said.Thread, said.Tenant, said.Owner = asked.Thread, asked.Thread, asked.Tenant, asked.Owner
	said.Role, said.CreatedAt = cove.RoleAssistant, time.Now()
	said.Query, said.Type, said.Model, said.Rounds, said.Stopped = out.Query, out.Type, out.Model, out.Rounds, out.Stopped
	for _, m := range []*cove.Message{&asked, said} {
		if err := c.v.e.cfg.Store.PutMessage(context.WithoutCancel(ctx), m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// history is the end of a thread. A thread that is full takes no more.
func (c chats) history(ctx context.Context, thread string) ([]*cove.Message, error) {
	var out []*cove.Message
	n := 0
	for m, err := range c.messages(ctx, cove.MessageFilter{Thread: thread}) {
		if err != nil {
			return nil, err
		}
		if n++; n >= maxThread {
			return nil, cove.Errorf(cove.Exhausted, "the thread has %d messages, and no more fit", maxThread).Remedy("begin a new thread")
		}
		if len(out) == maxHistory {
			copy(out, out[1:])
			out = out[:maxHistory-1]
		}
		out = append(out, m)
	}
	return out, nil
}

// again is the answer that the same request was given before, as far as it is kept.
func (c chats) again(ctx context.Context, id cove.ID, req cove.ChatRequest) (*cove.ChatAnswer, error) {
	if req.Thread == "" {
		req.Thread = string(id)
	}
	for m, err := range c.messages(ctx, cove.MessageFilter{Thread: req.Thread}) {
		if err != nil {
			return nil, err
		}
		if m.ID != id {
			continue
		}
		out := &cove.ChatAnswer{
			Thread: m.Thread, Message: *m, Query: m.Query, Type: m.Type, Rounds: m.Rounds, Model: m.Model, Stopped: m.Stopped,
		}
		for _, id := range m.Runs {
			c.recall(ctx, out, id)
		}
		if req.OnEvent != nil {
			req.OnEvent(cove.ChatEvent{Kind: cove.ChatToken, Text: m.Text})
		}
		return out, nil
	}
	return nil, cove.Errorf(cove.NotFound, "the answer is gone")
}

// recall puts a run back into an answer, if it is still known.
func (c chats) recall(ctx context.Context, out *cove.ChatAnswer, id cove.ID) {
	run, err := runs(c).find(ctx, id)
	if err != nil || run.Answer == nil {
		return
	}
	if run.Request.SQL+run.Request.Python == out.Query {
		out.Result = run
	}
	if fault := run.Answer.Error; fault != nil && (fault.Type == cove.RunSQLPolicy || fault.Type == cove.RunPythonPolicy) {
		out.Blocked = append(out.Blocked, *fault)
	}
}

// Messages implements [cove.Chats].
func (c chats) Messages(ctx context.Context, f cove.MessageFilter) iter.Seq2[*cove.Message, error] {
	a := action{Action: cove.Action{Verb: cove.ChatMessages}}
	return actSeq(ctx, c.v, a, func(ctx context.Context, _ *step) (iter.Seq2[*cove.Message, error], error) {
		if err := c.known(ctx, f.Thread); err != nil {
			return nil, err
		}
		return c.messages(ctx, f), nil
	})
}

// messages are those of the caller's threads, whatever the filter says.
func (c chats) messages(ctx context.Context, f cove.MessageFilter) iter.Seq2[*cove.Message, error] {
	f.Tenant, f.Owner = c.v.p.Tenant, c.v.p.Name
	return c.v.e.cfg.Store.Messages(ctx, f)
}

// known is nil if the caller has a thread, and otherwise says that there is none:
// whose it is else is nobody's matter.
func (c chats) known(ctx context.Context, thread string) error {
	if thread == "" {
		return cove.InvalidField("thread_id", "is empty; name the thread")
	}
	for _, err := range c.messages(ctx, cove.MessageFilter{Thread: thread, Limit: 1}) {
		return err
	}
	return cove.Errorf(cove.NotFound, "there is no thread %.60q", thread)
}

// Delete implements [cove.Chats].
func (c chats) Delete(ctx context.Context, thread string) error {
	a := action{Action: cove.Action{Verb: cove.ChatDelete}}
	return actDone(ctx, c.v, a, func(ctx context.Context, _ *step) error {
		// What is being answered would come back.
		release, err := c.hold(ctx, thread)
		if err != nil {
			return err
		}
		defer release()
		if err := c.known(ctx, thread); err != nil {
			return err
		}
		return c.v.e.cfg.Store.DeleteMessages(ctx, c.v.p.Tenant, c.v.p.Name, thread)
	})
}

func (c chats) key(thread string) threadKey { return threadKey{c.v.p.Tenant, c.v.p.Name, thread} }
