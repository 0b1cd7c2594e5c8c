//go:build !lean

package daemon

import (
	"context"
	"net"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
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
		Domain: at.Hostname(), Below: s.previews != nil, Secure: secure(at), Redeem: s.desk.Redeem, Platform: s.parts.engine.As, Logger: s.Logger,
	})
}

// beside serves the hosts of previews with p and all others with api.
func beside(p *preview.Handler, api http.Handler) http.Handler {
	if p == nil {
		return api
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Owns(r.Host) {
			p.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// door is a listener and who comes in by it.
type door struct {
	listener     net.Listener
	authenticate func(*http.Request) (cove.Principal, func(), error)
}

// handler is what answers at a door.
func (s *server) handler(d door, common httpapi.Config, previews *preview.Handler) http.Handler {
	if d.listener == s.previews {
		return previews
	}
	common.Platform, common.Authenticate, common.Watch = s.parts.engine.As, d.authenticate, s.watch.Follow
	common.Tickets, common.Secure = s.desk, secure(s.origins.public)
	common.Metrics, common.Begin, common.End = s.telemetry.Metrics(), s.telemetry.Request, s.answered
	api := httpapi.New(common)
	if d.listener == s.socket {
		return api
	}
	return beside(previews, api)
}
