//go:build !lean

package daemon

import (
	"context"

	"github.com/cove-sandbox/cove/internal/preview"
)

// listenPreviews opens the door of previews where they have one of their own.
func (s *server) listenPreviews(ctx context.Context) (err error) {
	if s.OnDemand || s.cfg.Preview.Addr == "" {
		return nil
	}
	l, err := listenTCP(ctx, "COVE_PREVIEW_ADDR", s.cfg.Preview.Addr)
	if err == nil {
		s.previews = s.bound(l)
	}
	return err
}

// previewer returns the handler of previews, or nil where there are none.
func (s *server) previewer() *preview.Handler {
	at := s.origins.preview
	if at == nil {
		return nil
	}
	return preview.New(preview.Config{
		Domain: at.Hostname(), Below: s.previews != nil, Secure: secure(at), Redeem: s.desk.Redeem, Platform: s.platform, Logger: s.Logger,
	})
}
