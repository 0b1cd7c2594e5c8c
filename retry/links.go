package retry

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// links leads to the sessions that took the place of those they are asked about.
type links struct {
	cove.Links

	mem *memory
}

// Download implements [cove.Links].
func (l links) Download(ctx context.Context, req cove.FileLink) (*cove.Link, error) {
	req.Session = l.mem.now(req.Session)
	return l.Links.Download(ctx, req)
}

// Upload implements [cove.Links].
func (l links) Upload(ctx context.Context, req cove.FileLink) (*cove.Link, error) {
	req.Session = l.mem.now(req.Session)
	return l.Links.Upload(ctx, req)
}

// Port implements [cove.Links].
func (l links) Port(ctx context.Context, req cove.PortLink) (*cove.Link, error) {
	req.Session = l.mem.now(req.Session)
	return l.Links.Port(ctx, req)
}
