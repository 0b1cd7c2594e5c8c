package httpapi

import (
	"context"
	"mime"
	"net/http"
	"reflect"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/wire"
)

// commandLimit leaves room for the longest command that can run, with its
// environment and some input, in JSON.
const commandLimit = intake.LargestJSON

func executeRoutes() []route {
	return []route{{
		method: http.MethodPost, pattern: "/api/sandboxes/{id}/execute", needs: []cove.Verb{cove.ProcessExec}, limit: commandLimit, events: "stdout, stderr, exit",
		summary: "Run a program to its end, or start it with background. As " + wire.ExecStream + " the body is the JSON on one line, " +
			"then the standard input as it comes, and the answer is always an event stream",
		takes: wire.ExecStream,
		also:  []other{{http.StatusAccepted, reflect.TypeFor[wire.Process](), "it was started in the background"}},
		deed:  deed{body: reflect.TypeFor[wire.ExecRequest](), answer: reflect.TypeFor[wire.Execution](), status: http.StatusOK, do: (*call).execute},
	}}
}

func (c *call) execute() error {
	if media, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type")); media == wire.ExecStream {
		return withInput(c, func(w wire.ExecRequest) wire.ExecRequest { return w }, wire.ExecRequest.Cove,
			func(r *cove.ExecRequest) *cove.ExecRequest { return r }, c.executeAsEvents)
	}
	w, err := decode[wire.ExecRequest](c)
	if err != nil {
		return err
	}
	req, err := w.Cove()
	if err != nil {
		return err
	}
	if w.Background {
		return c.startProcess(w, http.StatusAccepted)
	}
	req.IdempotencyKey = c.idempotencyKey() // for the platform to refuse: what is run twice runs twice
	if c.wantsEvents() {
		return c.stream(func(ctx context.Context, e *events) error { return c.executeAsEvents(ctx, e, req) })
	}
	x, err := c.processes().Exec(c.r.Context(), req)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, wire.ExecutionOf(x))
}

func (c *call) executeAsEvents(ctx context.Context, e *events, req cove.ExecRequest) error {
	req.OnOutput = e.chunk
	x, err := c.processes().Exec(ctx, req)
	if err != nil {
		return err
	}
	return e.send(wire.OnExit, "", wire.ExecutionOf(x))
}
