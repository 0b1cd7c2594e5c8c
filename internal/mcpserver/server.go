package mcpserver

import (
	"context"
	_ "embed"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

//go:embed instructions.md
var instructions string

// The methods of the protocol that are looked at on their way.
const (
	methodInitialize    = "initialize"
	methodInitialized   = "notifications/initialized"
	methodSetLevel      = "logging/setLevel"
	methodCallTool      = "tools/call"
	methodListResources = "resources/list"
)

// caller is who sent a request, and what it is sent to.
type caller struct {
	platform cove.Platform
	who      cove.Principal
	message  *intake.Body // that the request came in; nil for standard streams
	size     int          // of the message
}

// user names a caller for the time of an MCP session.
func (c caller) user() string { return c.who.Tenant + "/" + c.who.Name }

// face is what all MCP sessions share. Its one server has the tools; who calls them
// travels with each request.
type face struct {
	Config

	server *mcp.Server
	only   *caller // of standard streams; nil over HTTP

	wait sync.WaitGroup // for peers that went

	mu      sync.Mutex
	peers   map[*mcp.ServerSession]*peer // guarded by mu
	named   map[string]*peer             // by the id of the MCP session; guarded by mu
	leaving bool                         // the server ends: sandboxes stay as they are; guarded by mu
}

func newFace(cfg Config, only *caller) *face {
	f := &face{Config: cfg.withDefaults(), only: only, peers: map[*mcp.ServerSession]*peer{}, named: map[string]*peer{}}
	f.server = mcp.NewServer(
		&mcp.Implementation{Name: "cove", Title: "Cove", Description: "Sandboxes for code that nobody has read yet", Version: f.Version},
		&mcp.ServerOptions{Instructions: instructions, Logger: quiet(f.Logger), GetSessionID: f.newID},
	)
	f.server.AddReceivingMiddleware(f.look)
	f.addTools()
	f.addResources()
	return f
}

// quiet is a logger for the SDK, which tells of every step of every session.
func quiet(l *slog.Logger) *slog.Logger { return slog.New(atLeastWarn{l.Handler()}) }

type atLeastWarn struct{ slog.Handler }

// Enabled is the answer for a level.
func (h atLeastWarn) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, slog.LevelDebug)
}

// look sees every request before the SDK does.
func (f *face) look(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case methodInitialize, methodInitialized, methodSetLevel:
			if f.callerOf(req).size > maxKept {
				return nil, f.refuse(ctx, cove.Errorf(cove.Invalid, "a message with %s is kept as long as the MCP session and has at most %d bytes", method, maxKept).
					Remedy("leave out what is not needed"))
			}
		}
		switch method {
		case methodInitialize:
			if session, ok := req.GetSession().(*mcp.ServerSession); ok {
				if _, err := f.meet(session, f.callerOf(req)); err != nil {
					return nil, f.refuse(ctx, err)
				}
			}
		case methodListResources:
			if list, ok := req.(*mcp.ListResourcesRequest); ok {
				return f.listResources(ctx, list)
			}
		case methodCallTool:
			if message := f.callerOf(req).message; message != nil {
				message.Hold() // a call goes on when its client has left
				defer message.Free()
			}
			result, err := next(ctx, method, req)
			if r, ok := result.(*mcp.CallToolResult); ok && err == nil {
				f.misfit(r)
			}
			return result, err
		}
		return next(ctx, method, req)
	}
}

// callerOf is who sent a request.
func (f *face) callerOf(req mcp.Request) caller {
	if f.only != nil {
		return *f.only
	}
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return caller{}
	}
	who, _ := extra.TokenInfo.Extra[callerKey].(caller)
	return who
}
