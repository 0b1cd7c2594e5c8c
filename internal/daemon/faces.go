//go:build !lean

package daemon

import (
	"net"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/msbapi"
	"github.com/cove-sandbox/cove/internal/preview"
)

// faces are what answers beside the API: previews, and what clients of other systems
// find.
type faces struct {
	previews *preview.Handler // nil where there are none
	e2b      *e2bapi.Handler
	msb      http.Handler
	mcp      http.Handler
}

func (s *server) faces() faces {
	s.mcp = s.mcpFace()
	return faces{previews: s.previewer(), e2b: s.e2bFace(), msb: s.msbFace(), mcp: s.mcp}
}

// beside gives each request to the one whose it is. What is below a domain of
// somebody's is never answered by anybody else.
func (f faces) beside(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case f.previews != nil && f.previews.Owns(r.Host):
			f.previews.ServeHTTP(w, r)
		case f.e2b.Owns(r):
			f.e2b.ServeHTTP(w, r)
		case r.URL.Path == msbapi.RPCPath:
			f.msb.ServeHTTP(w, r)
		case r.URL.Path == mcpPath:
			f.mcp.ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// door is a listener and who comes in by it.
type door struct {
	listener     net.Listener
	authenticate func(*http.Request) (cove.Principal, func(), error)
}

// handler is what answers at a door.
func (s *server) handler(d door, common httpapi.Config, f faces) http.Handler {
	switch d.listener {
	case s.previews:
		return f.previews
	case s.msbDoor:
		return f.msb
	case s.e2bDoor:
		return s.alone(f.e2b)
	}
	common.Platform, common.Authenticate, common.Watch = s.platform, d.authenticate, s.watch.Follow
	common.Authorize, common.Bodies = s.parts.engine.Authorize, s.bodies
	common.Tickets, common.Secure = s.desk, secure(s.origins.public)
	common.Metrics, common.Begin, common.End, common.Provider = s.telemetry.Metrics(), s.telemetry.Request, s.answered, s.telemetry.Provider
	if _, fromNodes := d.listener.(*nodeListener); fromNodes {
		return s.forNodes(common, f)
	}
	api := httpapi.New(common)
	if d.listener == s.socket {
		return api
	}
	return s.directed(f.beside(api))
}
