package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type runs struct{ c *Client }

func (r runs) run(ctx context.Context, a ask) (*cove.Run, error) {
	w, err := get[wire.Run](ctx, r.c, a)
	if err != nil {
		return nil, err
	}
	return r.c.runOf(w)
}

func (c *Client) runOf(w wire.Run) (*cove.Run, error) {
	run, err := w.Cove()
	if err != nil {
		return nil, c.strange(err, "run")
	}
	return run, nil
}

// strange is the error of an answer whose values do not go together.
func (c *Client) strange(err error, what string) error {
	return cove.Wrap(cove.Unavailable, err, "%s answered with a %s that Cove does not give", c.name, what).Remedy("check the URL and the version of the server")
}

// Submit implements [cove.Runs].
func (r runs) Submit(ctx context.Context, req cove.RunRequest) (*cove.Run, error) {
	body := wire.RunCall{RunRequest: wire.RunRequestOf(req), Async: true}
	return r.run(ctx, ask{method: http.MethodPost, path: path{"/api/runs"}, body: body, header: once(req.IdempotencyKey)})
}

// Get implements [cove.Runs].
func (r runs) Get(ctx context.Context, id cove.ID) (*cove.Run, error) {
	return r.run(ctx, ask{method: http.MethodGet, path: path{"/api/runs/", string(id)}})
}

// Wait implements [cove.Runs].
func (r runs) Wait(ctx context.Context, id cove.ID) (*cove.Run, error) {
	return r.run(ctx, ask{method: http.MethodGet, path: path{"/api/runs/", string(id)}, query: values("wait", "true")})
}

// Delete implements [cove.Runs].
func (r runs) Delete(ctx context.Context, id cove.ID) error {
	return r.c.tell(ctx, ask{method: http.MethodDelete, path: path{"/api/runs/", string(id)}})
}

// Analyze implements [cove.Runs].
func (r runs) Analyze(ctx context.Context, req cove.RunRequest) (*cove.RunDecision, error) {
	if err := req.WithDefaults().Validate(); err != nil { // a form of the wire has no room for what does not go together
		return nil, err
	}
	w, err := get[wire.Analysis](ctx, r.c, ask{method: http.MethodPost, path: path{"/api/analyze"}, body: wire.AnalyzeRunOf(req)})
	if err != nil {
		return nil, err
	}
	return w.CoveRun(), nil
}

// List implements [cove.Runs].
func (r runs) List(ctx context.Context, f cove.RunFilter) iter.Seq2[*cove.Run, error] {
	query := values("state", string(f.State), "owner", f.Owner, "thread_id", f.Thread, "cursor", string(f.After))
	if !f.Before.IsZero() {
		query.Set("before", f.Before.Format(time.RFC3339Nano))
	}
	if f.Newest {
		query.Set("newest", "true")
	}
	return list(ctx, r.c, ask{method: http.MethodGet, path: path{"/api/runs"}, query: query}, f.Limit, r.c.runOf)
}
