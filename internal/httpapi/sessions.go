package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func sessionRoutes() []route {
	const one = "/api/sandboxes/{id}"
	return []route{
		{
			method: http.MethodPost, pattern: "/api/sandboxes", needs: []cove.Verb{cove.SessionOpen}, summary: "Open a session: the live one of this user and thread, or a new one", events: "queue, session",
			deed:    deed{body: reflect.TypeFor[wire.OpenRequest](), answer: reflect.TypeFor[wire.Session](), status: http.StatusCreated, do: (*call).open},
			headers: []header{onceHeader},
			also:    []other{{http.StatusOK, reflect.TypeFor[wire.Session](), "the session was there already"}},
		},
		{method: http.MethodGet, pattern: "/api/sandboxes", summary: "List sessions", deed: get((*call).list), query: append([]param{
			{name: "project_name", kind: word, doc: "only those of this project"},
			{name: "user_id", kind: word, doc: "only those of this user"},
			{name: "thread_id", kind: word, doc: "only those of this thread"},
			{name: "status", kind: word, doc: "only those in this state"},
			{name: "node_id", kind: word, doc: "only those of this node"},
			{name: "label", kind: word, many: true, doc: "only those with this metadata, as name=value"},
		}, pageParams...)},
		{method: http.MethodGet, pattern: one, summary: "Get a session", deed: get((*call).getSession)},
		{
			method: http.MethodDelete, pattern: one, summary: "End a session", deed: get((*call).closeSession),
			query: []param{{name: "keep_workspace", kind: flag, doc: "keep its files as a snapshot"}},
		},
		{method: http.MethodPost, pattern: one + "/renew", needs: []cove.Verb{cove.SessionRenew}, summary: "Move the idle deadline", deed: post(http.StatusOK, (*call).renew)},
		{method: http.MethodPost, pattern: one + "/stop", summary: "Free the sandbox and keep the files", deed: get((*call).stopSession)},
		{method: http.MethodPost, pattern: one + "/start", summary: "Bring a stopped session back", deed: get((*call).startSession)},
		{method: http.MethodGet, pattern: one + "/stats", summary: "See what a session consumes", deed: get((*call).usage)},
	}
}

// idempotencyKey is the header that makes a repeated request harmless.
const idempotencyKey = "Idempotency-Key"

func (c *call) idempotencyKey() string { return c.r.Header.Get(idempotencyKey) }

// unkeyed refuses a key where a repeat does the same again.
func (c *call) unkeyed(instead string) error {
	if c.idempotencyKey() == "" {
		return nil
	}
	return cove.InvalidField(idempotencyKey, "cannot keep this from being done twice; leave it out%s", instead)
}

func (c *call) open() error {
	w, err := decode[wire.OpenRequest](c)
	if err != nil {
		return err
	}
	req, err := w.Cove()
	if err != nil {
		return err
	}
	req.IdempotencyKey = c.idempotencyKey()
	if c.wantsEvents() {
		return c.stream(func(ctx context.Context, e *events) error {
			req.OnQueue = func(position int) { _ = e.send(wire.OnQueue, "", wire.QueuePlace{Position: position}) } // a number always is JSON
			s, err := c.platform.Sessions().Open(ctx, req)
			if err != nil {
				return err
			}
			return e.send(wire.OnSession, "", wire.SessionOf(s))
		})
	}
	s, err := c.platform.Sessions().Open(c.r.Context(), req)
	if err != nil {
		return err
	}
	if s.Created {
		return c.send(http.StatusCreated, wire.SessionOf(s))
	}
	return c.send(http.StatusOK, wire.SessionOf(s))
}

// sessionAnswer is the form of what the platform said about a session.
func sessionAnswer(s *cove.Session, err error) (wire.Session, error) {
	if err != nil {
		return wire.Session{}, err
	}
	return wire.SessionOf(s), nil
}

func (c *call) list() (wire.Page[wire.Session], error) {
	limit := c.pageSize()
	f := cove.SessionFilter{
		Project: c.query.text("project_name"), User: c.query.text("user_id"), Thread: c.query.text("thread_id"),
		State: cove.State(c.query.text("status")), Node: c.query.text("node_id"), After: cove.ID(c.query.text("cursor")), Limit: limit + 1,
	}
	if f.State != "" && !slices.Contains(cove.States(), f.State) {
		return wire.Page[wire.Session]{}, cove.InvalidField("status", "%.40q is unknown; use creating, running, paused, stopped or error", string(f.State))
	}
	for _, label := range c.query.texts("label") {
		name, value, ok := strings.Cut(label, "=")
		if !ok {
			return wire.Page[wire.Session]{}, cove.InvalidField("label", "%.80q is not of the form name=value", label)
		}
		if f.Metadata == nil {
			f.Metadata = map[string]string{}
		}
		f.Metadata[name] = value
	}
	return page(c.platform.Sessions().List(c.r.Context(), f), limit, wire.SessionOf, func(s *cove.Session) string { return string(s.ID) })
}

func (c *call) getSession() (wire.Session, error) {
	return sessionAnswer(c.platform.Sessions().Get(c.r.Context(), c.session()))
}

func (c *call) closeSession() (wire.Closed, error) {
	snapshot, err := c.platform.Sessions().Close(c.r.Context(), c.session(), c.query.flag("keep_workspace"))
	return wire.ClosedOf(c.session(), snapshot), err
}

func (c *call) renew(w wire.RenewRequest) (wire.Session, error) {
	d, err := w.Cove()
	if err != nil {
		return wire.Session{}, err
	}
	return sessionAnswer(c.platform.Sessions().Renew(c.r.Context(), c.session(), d))
}

func (c *call) stopSession() (wire.Session, error) {
	return sessionAnswer(c.platform.Sessions().Stop(c.r.Context(), c.session()))
}

func (c *call) startSession() (wire.Session, error) {
	return sessionAnswer(c.platform.Sessions().Start(c.r.Context(), c.session()))
}

func (c *call) usage() (wire.Usage, error) {
	u, err := c.platform.Sessions().Usage(c.r.Context(), c.session())
	return wire.UsageOf(u), err
}
