package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type volumes struct{ c *Client }

// Create implements [cove.Volumes].
func (v volumes) Create(ctx context.Context, req cove.VolumeRequest) (*cove.SavedVolume, error) {
	return v.one(ctx, ask{
		method: http.MethodPost, path: path{"/api/named-volumes"}, body: wire.VolumeRequest{Name: req.Name}, header: once(req.IdempotencyKey),
	})
}

// Get implements [cove.Volumes].
func (v volumes) Get(ctx context.Context, ref string) (*cove.SavedVolume, error) {
	return v.one(ctx, ask{method: http.MethodGet, path: path{"/api/named-volumes/", ref}})
}

func (v volumes) one(ctx context.Context, a ask) (*cove.SavedVolume, error) {
	w, err := get[wire.SavedVolume](ctx, v.c, a)
	if err != nil {
		return nil, err
	}
	return w.Cove(), nil
}

// List implements [cove.Volumes].
func (v volumes) List(ctx context.Context, f cove.VolumeFilter) iter.Seq2[*cove.SavedVolume, error] {
	a := ask{method: http.MethodGet, path: path{"/api/named-volumes"}, query: values("cursor", string(f.After))}
	return list(ctx, v.c, a, f.Limit, plain(wire.SavedVolume.Cove))
}

// Delete implements [cove.Volumes].
func (v volumes) Delete(ctx context.Context, ref string) error {
	return v.c.tell(ctx, ask{method: http.MethodDelete, path: path{"/api/named-volumes/", ref}})
}
