package msbapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// Config is what the server needs. Platform and Authenticate must be set; the rest
// has defaults.
type Config struct {
	// Platform returns the platform bound to a principal.
	Platform func(cove.Principal) cove.Platform
	// Authenticate returns whose key a secret is. done, if not nil, is called when
	// the request is over.
	Authenticate func(ctx context.Context, secret string) (p cove.Principal, done func(), err error)
	// Watch, if not nil, returns a context for a request of p that ends when p must
	// not go on. stop is called when the request is over.
	Watch func(ctx context.Context, p cove.Principal) (_ context.Context, stop func())
	// Authorize returns the error of a request whose key lacks the scopes for all of
	// these verbs, and has it journaled, before the body is read. The default leaves it
	// to Platform.
	Authorize func(ctx context.Context, p cove.Principal, session cove.ID, verbs ...cove.Verb) error
	// Bodies bounds the bodies that are in memory. The default is a budget of the
	// server's own.
	Bodies *intake.Budget
	// Templates returns the full names of the templates that are ready, beside base. The
	// default is that there are none.
	Templates func() []string
	// Isolation, if not nil, says what stands around a principal's sandbox. Clients of the
	// original take it for a virtual machine otherwise.
	Isolation func(ctx context.Context, p cove.Principal) (cove.Isolation, error)
	// Logger gets one line for each request, and the causes of errors. The default
	// throws them away.
	Logger *slog.Logger

	// BodyTime is how long a request may take to arrive: 30 s.
	BodyTime time.Duration
	// Stall is how long a client may not take its answer: 5 minutes.
	Stall time.Duration
}

// Paths of the server.
const (
	HealthPath = "/api/v1/health"
	RPCPath    = "/api/v1/rpc"
)

type server struct {
	Config

	spaces spaces
}

// New returns the handler of the two routes. It starts nothing; what lasts ends with
// the base context of the server that runs it.
func New(cfg Config) http.Handler {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Authorize == nil {
		cfg.Authorize = func(context.Context, cove.Principal, cove.ID, ...cove.Verb) error { return nil }
	}
	if cfg.Bodies == nil {
		cfg.Bodies = intake.New()
	}
	if cfg.Templates == nil {
		cfg.Templates = func() []string { return nil }
	}
	if cfg.BodyTime <= 0 {
		cfg.BodyTime = 30 * time.Second
	}
	if cfg.Stall <= 0 {
		cfg.Stall = 5 * time.Minute
	}
	return &server{Config: cfg, spaces: spaces{all: map[space]struct{}{}}}
}

// ServeHTTP implements [http.Handler].
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	c := &call{server: s, w: w, r: r, control: http.NewResponseController(w)}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.Body != nil && r.Body != http.NoBody {
		// Also for what is never read: the server throws it away.
		_ = c.control.SetReadDeadline(time.Now().Add(s.BodyTime)) // writers of tests have none
	}
	defer func() { s.log(c, begun) }()
	var err error
	switch {
	case r.URL.Path == HealthPath && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		c.send(http.StatusOK, map[string]string{"message": "Service is healthy"})
	case r.URL.Path == RPCPath && r.Method == http.MethodPost:
		err = c.serve()
	case r.URL.Path == HealthPath, r.URL.Path == RPCPath:
		err = &failure{status: http.StatusMethodNotAllowed, code: codeParams, text: "use GET " + HealthPath + " or POST " + RPCPath}
	default:
		err = &failure{status: http.StatusNotFound, code: codeParams, text: "there are only " + HealthPath + " and " + RPCPath}
	}
	switch {
	case err == nil:
	case c.whole || r.Body == nil || r.Body == http.NoBody:
		c.refuse(err)
	default:
		intake.Refuse(w, r, min(intake.Linger, s.Stall), func() { c.refuse(err) })
	}
}

func (s *server) log(c *call, begun time.Time) {
	s.Logger.LogAttrs(c.r.Context(), slog.LevelInfo, "microsandbox request",
		slog.String("method", c.method), slog.Int("status", c.status), slog.Float64("duration_ms", float64(time.Since(begun))/1e6),
		slog.String("principal", c.who.Name), slog.String("tenant", c.who.Tenant), slog.String("remote", c.r.RemoteAddr))
}
