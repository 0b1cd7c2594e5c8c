package client_test

import (
	"context"
	"net"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/preview"
	"github.com/cove-sandbox/cove/internal/ticket"
	"github.com/cove-sandbox/cove/platformtest"
)

// previewDomain is a name that only the clients of this test find.
const previewDomain = "preview.test"

// sign makes the URLs of links as a server does.
func (r *remote) sign(g cove.Grant) (string, error) {
	text := r.book.Issue(g)
	switch g.Kind {
	case cove.GrantPort:
		return "http://" + preview.Host(g.Port, g.Session, previewDomain) + "/?cove_ticket=" + text, nil
	case cove.GrantLogin:
		return r.server.URL + "/login?ticket=" + text, nil
	case cove.GrantDownload, cove.GrantUpload, cove.GrantConsole:
	}
	return r.server.URL + "/api/signed/file?ticket=" + text, nil
}

// previews serves the hosts of previews, and all others with api.
func (r *remote) previews(as func(cove.Principal) cove.Platform, desk *ticket.Desk, api http.Handler) http.Handler {
	p := preview.New(preview.Config{Domain: previewDomain, Redeem: desk.Redeem, Platform: as})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if p.Owns(req.Host) {
			p.ServeHTTP(w, req)
			return
		}
		api.ServeHTTP(w, req)
	})
}

// Extras has a browser that finds every host at the server.
func (r *remote) Extras() platformtest.Extras {
	extras := r.extras
	extras.Links = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, r.server.Listener.Addr().String())
		},
	}}
	return extras
}
