package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// bodyLimit is the usual bound on a JSON body.
const bodyLimit = 1 << 20

type api struct {
	Config

	mux     *http.ServeMux
	openAPI func() string
}

// New returns the handler of the whole API. It starts nothing and holds no
// state; the server that runs it ends streams by ending its base context.
func New(cfg Config) http.Handler {
	a := &api{Config: cfg.withDefaults(), mux: http.NewServeMux()}
	routes := table()
	a.openAPI = sync.OnceValue(func() string { return openAPI(a.Version) })
	byPattern := map[string]map[string]route{}
	for _, r := range routes {
		if byPattern[r.pattern] == nil {
			byPattern[r.pattern] = map[string]route{}
		}
		byPattern[r.pattern][r.method] = r
	}
	for pattern, methods := range byPattern {
		a.mux.Handle(pattern, dispatcher(methods))
	}
	a.mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { callOf(w).refuse(noRoute(r)) }))
	return a
}

// Refusing returns a handler that answers the requests for the state of the server, and
// everything else with why.
func Refusing(cfg Config, why error) http.Handler {
	a := &api{Config: cfg.withDefaults(), mux: http.NewServeMux()}
	for _, r := range healthRoutes() {
		if r.pattern == "/health" || r.pattern == "/api/v1/health" || r.pattern == "/ready" {
			a.mux.Handle(r.pattern, dispatcher(map[string]route{r.method: r}))
		}
	}
	a.mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { callOf(w).refuse(why) }))
	return a
}

// saneID reports whether a caller's id for a request can stand in a log.
func saneID(id string) bool {
	bad := strings.ContainsFunc(id, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-'
	})
	return !bad && id != "" && len(id) <= 64
}

// ServeHTTP gives a request its id, finds its route and logs how it went.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	id := r.Header.Get("X-Request-Id")
	if !saneID(id) {
		id = string(cove.NewID())
	}
	c := &call{api: a, w: &answer{ResponseWriter: w}, r: withoutSlash(r), control: http.NewResponseController(w), id: id}
	c.w.call = c
	h := w.Header()
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	defer func() {
		abort := c.rescue(recover())
		a.log(c, start)
		c.ended(time.Since(start))
		if abort {
			panic(http.ErrAbortHandler) //nolint:forbidigo // the server's own way to break a connection off
		}
	}()
	if escaped := c.r.URL.EscapedPath(); path.Clean(escaped) != escaped {
		// The mux would redirect to the clean path, which may be another thing.
		c.refuse(noRoute(r))
		return
	}
	a.mux.ServeHTTP(c.w, c.r)
}

// withoutSlash returns r without the slash at the end of its path.
func withoutSlash(r *http.Request) *http.Request {
	if len(r.URL.Path) < 2 || !strings.HasSuffix(r.URL.Path, "/") {
		return r
	}
	trimmed := *r
	trimmed.URL = new(url.URL)
	*trimmed.URL = *r.URL
	trimmed.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
	trimmed.URL.RawPath = strings.TrimSuffix(r.URL.RawPath, "/")
	return &trimmed
}

// callOf returns the call that w belongs to. The mux hands on what ServeHTTP
// gave it.
func callOf(w http.ResponseWriter) *call {
	return w.(*answer).call
}

func noRoute(r *http.Request) error {
	return cove.Errorf(cove.NotFound, "there is no route %.200q; /openapi.json lists them", r.URL.Path).Reason(reasonNoRoute)
}

// dispatcher serves the methods of one path.
func dispatcher(methods map[string]route) http.Handler {
	allowed := make([]string, 0, len(methods))
	for m := range methods {
		allowed = append(allowed, m)
	}
	read, readable := methods[http.MethodGet]
	if readable = readable && read.hasHead(); readable {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(w)
		c.r = r
		method := r.Method
		if method == http.MethodHead && readable {
			method = http.MethodGet // the server leaves the body out
		}
		found, ok := methods[method]
		if !ok {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			c.refuse(cove.Errorf(cove.Invalid, "%.20q is no method of this route; use %s", r.Method, strings.Join(allowed, " or ")).Reason(reasonNoMethod))
			return
		}
		c.route = found.pattern
		if err := c.follow(found); err != nil {
			c.refuse(err)
		}
	})
}

// follow does what a route says.
func (c *call) follow(to route) (err error) {
	if c.r.Body != http.NoBody {
		// Also for what is never read: the server throws it away, and must not
		// wait for it for ever.
		_ = c.control.SetReadDeadline(time.Now().Add(c.api.BodyTime))
	}
	if !to.open {
		who, done, err := c.authenticate()
		if done != nil {
			defer done()
		}
		if err != nil {
			return cmp.Or(cutOff(c.r.Context()), err)
		}
		c.who, c.platform = who, c.api.Platform(who)
		defer c.watched()()
		c.begun()
	}
	c.body = c.api.Bodies.Body(c.who)
	defer c.body.Free()
	if len(to.needs) > 0 {
		if err := c.api.Authorize(c.r.Context(), c.who, c.session(), to.needs...); err != nil {
			return err
		}
	}
	if c.query, err = parseQuery(c.r.URL.RawQuery, to.query); err != nil {
		return err
	}
	if c.limit = to.limit; c.limit == 0 {
		c.limit = bodyLimit
	}
	return c.blame(to.do(c))
}

// rescue turns a panic into an answer, or reports that the connection must be
// broken off because an answer had begun: the client must not take it for whole.
func (c *call) rescue(p any) (abort bool) {
	if p == nil {
		return false
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return true
	}
	begun := c.w.status != 0
	c.api.Logger.LogAttrs(c.r.Context(), slog.LevelError, "request panicked",
		slog.String("request_id", c.id), slog.String("route", c.route), slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
	c.refuse(cove.Errorf(cove.Internal, "internal error; the log has the cause under the request id"))
	return begun
}

// abort breaks the connection off, so that the client sees that what it got is
// not whole.
func (c *call) abort(err error) {
	c.note(err, problemOf(err, c.id))
	panic(http.ErrAbortHandler) //nolint:forbidigo // the server's own way to break a connection off
}

func (a *api) log(c *call, start time.Time) {
	a.Logger.LogAttrs(c.r.Context(), slog.LevelInfo, "request",
		slog.String("request_id", c.id), slog.String("method", c.r.Method), slog.String("route", c.route), slog.String("path", c.r.URL.Path),
		slog.Int("status", c.w.status), slog.Int64("bytes", c.w.bytes), slog.Float64("duration_ms", float64(time.Since(start))/1e6),
		slog.String("principal", c.who.Name), slog.String("tenant", c.who.Tenant), slog.String("provider", c.provider()), slog.String("remote", c.r.RemoteAddr))
}
