package preview

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config is what previews need. Domain, Platform and one of Redeem and Open must be
// set; the rest has defaults.
type Config struct {
	// Domain is what every preview's host is below, in lower case.
	Domain string
	// Below says that the domain itself is somebody else's, as localhost is
	// everybody's, and only the names below it are previews'.
	Below bool
	// Secure says that browsers reach previews over https.
	Secure bool
	// Redeem returns what a ticket of a kind grants and whom it acts for. done, if
	// not nil, is called when the request is over.
	Redeem func(ctx context.Context, ticket string, kind cove.GrantKind) (g cove.Grant, p cove.Principal, done func(), err error)
	// Open, if not nil, takes the place of tickets: it says whom a request to a port
	// acts for, or refuses it. It is asked again while the request lasts. There are
	// no cookies of ours then, so a page of any origin may ask, and a program gets
	// an Authorization or X-API-Key that does not hold a key of Cove's. done, if not
	// nil, is called when the request is over.
	Open func(ctx context.Context, session cove.ID, port int, r *http.Request) (p cove.Principal, done func(), err error)
	// Refusal says in which words a request that no program answered is refused.
	// The default is a line of text for people.
	Refusal func(session cove.ID, port int, err error) (status int, contentType, text string)
	// Platform returns the platform bound to a principal.
	Platform func(cove.Principal) cove.Platform
	// Logger gets one line for each request. The default throws them away.
	Logger *slog.Logger

	// Stall is how long one side may not take what the other sends: 1 minute.
	Stall time.Duration
	// Quiet is how long a request or WebSocket may pass without a byte either way:
	// 5 minutes.
	Quiet time.Duration
	// Recheck is how often a ticket is looked at again while a request that it let
	// in lasts: 5 s.
	Recheck time.Duration
	// AtOnce is how many requests may be under way to one session: 100.
	AtOnce int
}

// Handler serves previews. It is safe for concurrent use.
type Handler struct {
	cfg Config

	mu   sync.Mutex
	open map[cove.ID]int // guarded by mu; requests under way
}

// New returns a handler. It starts nothing; the server that runs it ends what
// lasts by ending its base context.
func New(cfg Config) *Handler {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&cfg.Stall, time.Minute}, {&cfg.Quiet, 5 * time.Minute}, {&cfg.Recheck, 5 * time.Second}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if cfg.AtOnce <= 0 {
		cfg.AtOnce = 100
	}
	return &Handler{cfg: cfg, open: map[cove.ID]int{}}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	at, ok := h.find(r.Host)
	a := &answer{ResponseWriter: w, control: http.NewResponseController(w), stall: h.cfg.Stall}
	v := &visit{Handler: h, w: a, r: r, at: at}
	defer func() { h.log(v, start) }() // also where the proxy breaks off by panic
	if !ok {
		v.refuse(cove.Errorf(cove.NotFound, "there is no preview of this name"))
		return
	}
	if err := v.serve(); err != nil {
		v.refuse(err)
	}
}

// enter counts a request to a session, or refuses it.
func (h *Handler) enter(session cove.ID) (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[session] >= h.cfg.AtOnce {
		return nil, cove.Errorf(cove.Exhausted, "%d requests to this session are under way, the most there may be", h.cfg.AtOnce)
	}
	h.open[session]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.open[session]--; h.open[session] == 0 {
			delete(h.open, session)
		}
	}, nil
}

// log says how a request went. Paths and queries are the program's own business.
func (h *Handler) log(v *visit, start time.Time) {
	h.cfg.Logger.LogAttrs(v.r.Context(), slog.LevelInfo, "preview",
		slog.String("session", string(v.at.session)), slog.Int("port", v.at.port), slog.String("method", v.r.Method),
		slog.Int("status", v.w.status), slog.Int64("bytes", v.w.bytes.Load()), slog.Float64("duration_ms", float64(time.Since(start))/1e6),
		slog.String("principal", v.who.Name), slog.String("tenant", v.who.Tenant), slog.String("remote", v.r.RemoteAddr))
}
