package client

import (
	"context"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type runs struct{ c *Client }

func (r runs) run(ctx context.Context, a ask) (*cove.Run, error) {
	w, err := get[wire.Run](ctx, r.c, a)
	if err != nil {
		return nil, err
	}
	run, err := w.Cove()
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "%s answered with a run that Cove does not give", r.c.name).Remedy("check the URL and the version of the server")
	}
	return run, nil
}

// Submit implements [cove.Runs].
func (r runs) Submit(ctx context.Context, req cove.RunRequest) (*cove.Run, error) {
	return r.run(ctx, ask{method: http.MethodPost, path: path{"/api/runs"}, body: wire.RunRequestOf(req), header: once(req.IdempotencyKey)})
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
