package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type datasets struct{ c *Client }

// List implements [cove.Datasets].
func (d datasets) List(ctx context.Context, f cove.DatasetFilter) iter.Seq2[*cove.Dataset, error] {
	a := ask{method: http.MethodGet, path: path{"/api/datasets"}, query: values("cursor", f.After)}
	return list(ctx, d.c, a, f.Limit, plain(wire.Dataset.Cove))
}

// Schema implements [cove.Datasets].
func (d datasets) Schema(ctx context.Context, id string) (*cove.Dataset, error) {
	w, err := get[wire.Dataset](ctx, d.c, ask{method: http.MethodGet, path: path{"/api/datasets/", id, "/schema"}})
	if err != nil {
		return nil, err
	}
	return w.Cove(), nil
}
