package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type contexts struct {
	c  *Client
	id cove.ID
}

func (x contexts) at(name, rest string) path {
	return path{sandboxes, string(x.id), "/contexts/", name, rest}
}

// Run implements [cove.Contexts].
func (x contexts) Run(ctx context.Context, req cove.CodeRequest) (*cove.CodeResult, error) {
	a := ask{method: http.MethodPost, path: of(x.id, "/code"), body: wire.CodeRequestOf(req), header: once(req.IdempotencyKey)}
	if req.OnOutput == nil && req.OnResult == nil {
		w, err := get[wire.CodeResult](ctx, x.c, a)
		if err != nil {
			return nil, err
		}
		return w.Cove(), nil
	}
	var r *cove.CodeResult
	for f, err := range x.c.follow(ctx, a, wire.OnResult) {
		if err != nil {
			return nil, err
		}
		if err := x.c.chunk(f, req.OnOutput); err != nil {
			return nil, err
		}
		if f.name == wire.OnValue && req.OnResult != nil {
			w, err := parse[wire.Value](x.c, f)
			if err != nil {
				return nil, err
			}
			req.OnResult(w.Cove())
		}
		if f.name == wire.OnResult {
			w, err := parse[wire.CodeResult](x.c, f)
			if err != nil {
				return nil, err
			}
			r = w.Cove()
		}
	}
	return r, nil
}

// Open implements [cove.Contexts].
func (x contexts) Open(ctx context.Context, spec cove.ContextSpec) (*cove.CodeContext, error) {
	w, err := get[wire.Context](ctx, x.c, ask{
		method: http.MethodPost, path: of(x.id, "/contexts"), body: wire.ContextRequestOf(spec), header: once(spec.IdempotencyKey),
	})
	if err != nil {
		return nil, err
	}
	return new(w.Cove()), nil
}

// List implements [cove.Contexts].
func (x contexts) List(ctx context.Context) iter.Seq2[cove.CodeContext, error] {
	return list(ctx, x.c, ask{method: http.MethodGet, path: of(x.id, "/contexts")}, 0, plain(wire.Context.Cove))
}

// Restart implements [cove.Contexts].
func (x contexts) Restart(ctx context.Context, name string) error {
	return x.c.tell(ctx, ask{method: http.MethodPost, path: x.at(name, "/restart")})
}

// Interrupt implements [cove.Contexts].
func (x contexts) Interrupt(ctx context.Context, name string) error {
	return x.c.tell(ctx, ask{method: http.MethodPost, path: x.at(name, "/interrupt")})
}

// Close implements [cove.Contexts].
func (x contexts) Close(ctx context.Context, name string) error {
	return x.c.tell(ctx, ask{method: http.MethodDelete, path: x.at(name, "")})
}

// Analyze implements [cove.Contexts].
func (x contexts) Analyze(ctx context.Context, req cove.AnalyzeRequest) (*cove.CodeAnalysis, error) {
	w, err := get[wire.Analysis](ctx, x.c, ask{method: http.MethodPost, path: path{"/api/analyze"}, body: wire.AnalyzeCodeOf(x.id, req)})
	if err != nil {
		return nil, err
	}
	return w.Cove()
}
