package mcpserver

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// Config is what a server needs to know. The zero value is of use.
type Config struct {
	// Budget bounds what one tool answers: 20 KiB.
	Budget cove.Bytes
	// Version is that of the program.
	Version string
	// ToolImports is what becomes of imports in run_python_code; "" means that they
	// are blocked.
	ToolImports cove.ImportMode
	// Template is that of sessions that are made for clients; "" means the
	// platform's own.
	Template string
	// Session is used by every tool that names none. It is not stopped at the end.
	// "": each MCP session has one of its own.
	Session cove.ID
	// Hosts are the names, without ports, under which clients reach the server
	// through a proxy on this machine. Others than those of this machine are refused
	// there, so that no web page can get in by a name of its own.
	Hosts []string
	// Bodies bounds the messages over HTTP that are in memory. The default is a budget
	// of the server's own.
	Bodies *intake.Budget
	// Watch, if not nil, returns a context for a call of p: it ends when p must not
	// go on, with a cause that says why. stop is called when the call is over.
	Watch func(ctx context.Context, p cove.Principal) (_ context.Context, stop func())
	// Idle is how long an MCP session over HTTP lasts without a request: 30 minutes.
	Idle time.Duration
	// Mark tells MCP sessions of this server from those of others behind the same
	// address: their ids begin with it and a dot. "": there are no others.
	Mark string
	// Elsewhere returns what hands requests on to the server with another mark.
	// NotFound says that it is gone, and its MCP sessions with it. It must be set
	// where Mark is.
	Elsewhere func(r *http.Request, mark string) (http.Handler, error)
	// Logger gets a line for each call, without what is in it, and the causes of
	// errors. The default throws them away.
	Logger *slog.Logger
}

// Bounds on what clients can have at once, and on what they can send.
const (
	maxPeers     = 4096 // MCP sessions
	maxPeersEach = 256  // those of one principal
	maxCalls     = 256  // calls under way in one MCP session
	maxOwn       = 8    // sandboxes that were made for one MCP session
	maxMessage   = 4 << 20
	maxKept      = 16 << 10 // of a message that the SDK keeps with its MCP session
	minBudget    = cove.KiB

	tidyTime = 10 * time.Second // to stop what was made for a client
	bodyTime = 30 * time.Second // for a message to arrive
	stall    = 5 * time.Minute  // for a client to take a piece of an answer
)

func (c Config) withDefaults() Config {
	if c.Budget == 0 {
		c.Budget = 20 * cove.KiB
	}
	c.Budget = max(c.Budget, minBudget)
	if c.Idle == 0 {
		c.Idle = 30 * time.Minute
	}
	if c.Bodies == nil {
		c.Bodies = intake.New()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Watch == nil {
		c.Watch = func(ctx context.Context, _ cove.Principal) (context.Context, func()) { return ctx, func() {} }
	}
	return c
}
