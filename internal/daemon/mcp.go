//go:build !lean

package daemon

import (
	"context"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/auth"
	"github.com/cove-sandbox/cove/internal/cluster"
	"github.com/cove-sandbox/cove/internal/mcpserver"
)

// mcpPath is where clients of MCP find the server.
const mcpPath = "/mcp"

// mcpFace is what they find there.
func (s *server) mcpFace() *mcpserver.Handler {
	cfg := mcpserver.Config{
		Budget: s.cfg.Faces.MCPBudget, Version: s.Version, ToolImports: s.cfg.ToolImports(), Watch: s.watch.Follow, Logger: s.Logger, Bodies: s.bodies,
	}
	if s.origins.public != nil {
		cfg.Hosts = []string{s.origins.public.Hostname()}
	}
	if s.member != nil {
		cfg.Mark, cfg.Elsewhere = cluster.Mark(s.cfg.NodeID), s.mcpElsewhere
	}
	return mcpserver.HTTP(cfg, s.platform, func(r *http.Request) (cove.Principal, func(), error) {
		return s.keys.Authenticate(r.Context(), auth.FromRequest(r))
	})
}

// mcpElsewhere hands requests on to the node that has their MCP session, of those only
// who show a key. That node asks for it again, and counts them.
func (s *server) mcpElsewhere(r *http.Request, mark string) (http.Handler, error) {
	if err := s.keys.Known(r.Context(), auth.FromRequest(r)); err != nil {
		return nil, err
	}
	return s.member.Pass(r.Context(), mark, mcpserver.Refuse)
}

// endMCP ends the sessions of MCP clients, whose calls outlive their requests.
func (s *server) endMCP(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	return s.mcp.Close(ctx)
}
