package client

import (
	"context"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type nodes struct{ c *Client }

// List implements [cove.Nodes].
func (n nodes) List(ctx context.Context) ([]cove.Node, error) {
	w, err := get[wire.Page[wire.Node]](ctx, n.c, ask{method: http.MethodGet, path: path{"/api/nodes"}})
	if err != nil {
		return nil, err
	}
	all := make([]cove.Node, 0, len(w.Items))
	for _, one := range w.Items {
		all = append(all, one.Cove())
	}
	return all, nil
}

// Drain implements [cove.Nodes].
func (n nodes) Drain(ctx context.Context, node string) (*cove.Node, error) {
	return n.change(ctx, node, "/drain")
}

// Uncordon implements [cove.Nodes].
func (n nodes) Uncordon(ctx context.Context, node string) (*cove.Node, error) {
	return n.change(ctx, node, "/uncordon")
}

func (n nodes) change(ctx context.Context, node, how string) (*cove.Node, error) {
	w, err := get[wire.Node](ctx, n.c, ask{method: http.MethodPost, path: path{"/api/nodes/", node, how}})
	if err != nil {
		return nil, err
	}
	return new(w.Cove()), nil
}
