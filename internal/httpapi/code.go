package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/wire"
)

// codeLimit is for code in JSON. What is longer goes into a file, which is run then.
const codeLimit = intake.LargestJSON

func codeRoutes() []route {
	const contexts = "/api/sandboxes/{id}/contexts"
	const one = contexts + "/{context}"
	return []route{
		{
			method: http.MethodPost, pattern: "/api/sandboxes/{id}/code", needs: []cove.Verb{cove.ContextRun}, summary: "Run code in a context that remembers", limit: codeLimit, events: "stdout, stderr, value, result", headers: []header{onceHeader},
			deed: deed{body: reflect.TypeFor[wire.CodeRequest](), answer: reflect.TypeFor[wire.CodeResult](), status: http.StatusOK, do: (*call).runCode},
		},
		{method: http.MethodGet, pattern: contexts, summary: "List contexts", deed: get((*call).listContexts), query: pageParams},
		{method: http.MethodPost, pattern: contexts, needs: []cove.Verb{cove.ContextOpen}, summary: "Open a context", deed: post(http.StatusCreated, (*call).openContext), headers: []header{onceHeader}},
		{method: http.MethodPost, pattern: one + "/restart", summary: "Make a context forget all", deed: act((*call).restartContext)},
		{method: http.MethodPost, pattern: one + "/interrupt", summary: "Stop what runs in a context", deed: act((*call).interruptContext)},
		{method: http.MethodDelete, pattern: one, summary: "Close a context", deed: act((*call).closeContext)},
	}
}

func (c *call) runCode() error {
	w, err := decode[wire.CodeRequest](c)
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
			req.OnOutput, req.OnResult = e.chunk, e.values(w.Values)
			r, err := c.contexts().Run(ctx, req)
			if err != nil {
				return err
			}
			return e.send(wire.OnResult, "", wire.CodeResultOf(c.session(), r))
		})
	}
	r, err := c.contexts().Run(c.r.Context(), req)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, wire.CodeResultOf(c.session(), r))
}

func (c *call) listContexts() (wire.Page[wire.Context], error) {
	return pageBySkip(c, c.contexts().List(c.r.Context()), wire.ContextOf)
}

func (c *call) openContext(w wire.ContextRequest) (wire.Context, error) {
	spec := w.Cove()
	spec.IdempotencyKey = c.idempotencyKey()
	opened, err := c.contexts().Open(c.r.Context(), spec)
	if err != nil {
		return wire.Context{}, err
	}
	return wire.ContextOf(*opened), nil
}

func (c *call) restartContext() error {
	return c.contexts().Restart(c.r.Context(), c.r.PathValue("context"))
}

func (c *call) interruptContext() error {
	return c.contexts().Interrupt(c.r.Context(), c.r.PathValue("context"))
}

func (c *call) closeContext() error {
	return c.contexts().Close(c.r.Context(), c.r.PathValue("context"))
}
