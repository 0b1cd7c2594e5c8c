package httpapi

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"reflect"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func trialRoutes() []route {
	const trial = "/api/sandboxes/{id}/trial"
	return []route{
		{
			method: http.MethodPost, pattern: trial, needs: []cove.Verb{cove.TrialRun}, limit: commandLimit, events: "stdout, stderr, trial", takes: wire.ExecStream,
			summary: "Run a program on trial and see what it changed; the input may follow as with execute",
			deed:    deed{body: reflect.TypeFor[wire.TrialRequest](), answer: reflect.TypeFor[wire.Trial](), status: http.StatusOK, do: (*call).try},
		},
		{method: http.MethodGet, pattern: trial, summary: "See what the open trial has changed", deed: get((*call).getTrial)},
		{
			method: http.MethodGet, pattern: trial + "/before", summary: "Read a file as it was before the open trial, up to 1 MiB", gives: octets,
			deed: deed{status: http.StatusOK, do: (*call).beforeTrial}, query: []param{{name: "path", kind: word, must: true, doc: "relative paths start in the workspace"}},
		},
		{method: http.MethodPost, pattern: trial + "/commit", summary: "Keep what the open trial has changed", deed: act((*call).commitTrial)},
		{method: http.MethodPost, pattern: trial + "/discard", summary: "Take back what the open trial has changed", deed: act((*call).discardTrial)},
	}
}

func (c *call) trials() cove.Trials { return c.platform.Trials(c.session()) }

func (c *call) try() error {
	if media, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type")); media == wire.ExecStream {
		return withInput(c, func(w wire.TrialRequest) wire.ExecRequest { return w.ExecRequest }, wire.TrialRequest.Cove,
			func(r *cove.TrialRequest) *cove.ExecRequest { return &r.ExecRequest }, c.tryAsEvents)
	}
	w, err := decode[wire.TrialRequest](c)
	if err != nil {
		return err
	}
	req, err := w.Cove()
	if err != nil {
		return err
	}
	req.IdempotencyKey = c.idempotencyKey() // for the platform to refuse
	if c.wantsEvents() {
		return c.stream(func(ctx context.Context, e *events) error { return c.tryAsEvents(ctx, e, req) })
	}
	t, err := c.trials().Run(c.r.Context(), req)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, wire.TrialOf(t))
}

func (c *call) tryAsEvents(ctx context.Context, e *events, req cove.TrialRequest) error {
	req.OnOutput = e.chunk
	t, err := c.trials().Run(ctx, req)
	if err != nil {
		return err
	}
	return e.send(wire.OnTrial, "", wire.TrialOf(t))
}

func (c *call) getTrial() (wire.Trial, error) {
	t, err := c.trials().Get(c.r.Context())
	if err != nil {
		return wire.Trial{}, err
	}
	return wire.TrialOf(t), nil
}

func (c *call) beforeTrial() error {
	content, err := c.trials().Before(c.r.Context(), c.query.text("path"))
	if err != nil {
		return err
	}
	return c.download(http.StatusOK, octets, io.NopCloser(bytes.NewReader(content)), int64(len(content)))
}

func (c *call) commitTrial() error  { return c.trials().Commit(c.r.Context()) }
func (c *call) discardTrial() error { return c.trials().Discard(c.r.Context()) }
