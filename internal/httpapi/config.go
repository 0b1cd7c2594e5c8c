package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/hostpath"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/wire"
)

// Config is what the API needs. Platform and Authenticate must be set; the
// rest has defaults.
type Config struct {
	// Platform returns the platform bound to a principal.
	Platform func(cove.Principal) cove.Platform
	// Authenticate returns who sent r. done, if not nil, is called when the
	// request is over.
	Authenticate func(r *http.Request) (p cove.Principal, done func(), err error)
	// Authorize returns the error of a request whose key lacks the scopes for all of
	// these verbs, and has it journaled, before the body is read. The default leaves it
	// to Platform.
	Authorize func(ctx context.Context, p cove.Principal, session cove.ID, verbs ...cove.Verb) error
	// Bodies bounds the bodies that are in memory. The default is a budget of the
	// API's own.
	Bodies *intake.Budget
	// Watch, if not nil, returns a context for a request of p: it ends when p must
	// not go on, with an Unauthenticated cause that says why. stop is called when
	// the request is over.
	Watch func(ctx context.Context, p cove.Principal) (_ context.Context, stop func())
	// Tickets takes the tickets of links and of browsers that are signed in. The
	// default takes none.
	Tickets Tickets
	// Console has the pages of the web console; nil: this build has none.
	Console Console
	// Journal checks the chain of the journal. nil: this server cannot.
	Journal func(ctx context.Context) (wire.JournalCheck, error)
	// Secure says that browsers reach the server over https.
	Secure bool
	// Paths are those that only operators are told.
	Paths hostpath.Filter
	// Health says how the server is. The default is always healthy.
	Health func(ctx context.Context) wire.Health
	// Metrics shows the server's numbers to who may see them. The default is that
	// there are none.
	Metrics http.Handler
	// Begin is told of a request that showed a valid key, with its route, and
	// returns the context to go on with. The default is the request's own.
	Begin func(r *http.Request, route string) context.Context
	// End is told how a request went. The default tells nobody.
	End func(ctx context.Context, e Ending)
	// Provider returns which provider served a request with the context that Begin
	// gave, as far as that is known, or "". The default knows none.
	Provider func(ctx context.Context) string
	// Logger gets one line for each request, and the causes of errors. The
	// default throws them away.
	Logger *slog.Logger
	// Explain judges a command under a policy and runs nothing; "" means the
	// policy of the settings. nil: this server cannot.
	Explain func(profile string, req cove.ExecRequest) (wire.Analysis, error)
	// Verify attacks sandboxes of a provider, "" meaning the one of the settings,
	// and calls found with how each attempt went. nil: this server cannot.
	Verify func(ctx context.Context, provider string, found func(wire.Finding) error) error
	// ToolImports is what becomes of imports in run_python_code; "" means that they
	// are blocked.
	ToolImports cove.ImportMode
	// Version is the server's own, for /health and /openapi.json.
	Version string

	// Heartbeat is how often a silent stream says that it lives: 15 s.
	Heartbeat time.Duration
	// OpenAfter is how long a stream waits for its first event before it
	// answers 200; an error that comes earlier has a status of its own: 500 ms.
	OpenAfter time.Duration
	// Stall is how long a client may neither send what it announced nor take
	// what it asked for before its connection is closed: 5 minutes.
	Stall time.Duration
	// BodyTime is how long a JSON body may take to arrive: 30 s.
	BodyTime time.Duration
	// HangUp is how long a terminal's program has to end by itself when its
	// client has gone, before it is killed: 2 s.
	HangUp time.Duration
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Authorize == nil {
		c.Authorize = func(context.Context, cove.Principal, cove.ID, ...cove.Verb) error { return nil }
	}
	if c.Bodies == nil {
		c.Bodies = intake.New()
	}
	if c.Tickets == nil {
		c.Tickets = noTickets{}
	}
	if c.Health == nil {
		c.Health = func(context.Context) wire.Health { return wire.Health{Status: wire.Healthy} }
	}
	if c.Provider == nil {
		c.Provider = func(context.Context) string { return "" }
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Heartbeat, 15 * time.Second},
		{&c.OpenAfter, 500 * time.Millisecond},
		{&c.Stall, 5 * time.Minute},
		{&c.BodyTime, 30 * time.Second},
		{&c.HangUp, 2 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return c
}

// Server returns an HTTP server for the handler h with bounds on what a client
// may send before it is known, and on how long an idle connection stays. Answers
// have no time limit of their own: streams last as long as what they show.
func Server(h http.Handler, logger *slog.Logger) *http.Server {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	one := new(http.Protocols)
	one.SetHTTP1(true) // connections that are handed over, and bodies both ways at once
	return &http.Server{
		Handler:           h,
		Protocols:         one,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}
