package client

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type links struct{ c *Client }

// Download implements [cove.Links].
func (l links) Download(ctx context.Context, req cove.FileLink) (*cove.Link, error) {
	return l.file(ctx, http.MethodGet, req)
}

// Upload implements [cove.Links].
func (l links) Upload(ctx context.Context, req cove.FileLink) (*cove.Link, error) {
	return l.file(ctx, http.MethodPut, req)
}

func (l links) file(ctx context.Context, method string, req cove.FileLink) (*cove.Link, error) {
	return l.link(ctx, ask{method: http.MethodPost, path: of(req.Session, "/files/url"), body: wire.FileLinkRequestOf(method, req)})
}

// Port implements [cove.Links].
func (l links) Port(ctx context.Context, req cove.PortLink) (*cove.Link, error) {
	return l.link(ctx, ask{
		method: http.MethodPost, path: path{sandboxes, string(req.Session), "/ports/", strconv.Itoa(req.Port)}, body: wire.LinkRequestOf(req.TTL),
	})
}

// Login implements [cove.Links].
func (l links) Login(ctx context.Context, ttl time.Duration) (*cove.Link, error) {
	return l.link(ctx, ask{method: http.MethodPost, path: path{"/api/login-links"}, body: wire.LinkRequestOf(ttl)})
}

func (l links) link(ctx context.Context, a ask) (*cove.Link, error) {
	w, err := get[cove.Link](ctx, l.c, a)
	if err != nil {
		return nil, err
	}
	return &w, nil
}
