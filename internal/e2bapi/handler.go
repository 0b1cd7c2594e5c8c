package e2bapi

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// Handler serves the face. It is safe for concurrent use.
type Handler struct {
	cfg     Config
	control *http.ServeMux
	envd    map[string]action
	code    *http.ServeMux
	open    paces    // of calls to sandboxes that show no token
	trials  trials   // of signatures
	watches watchers // that clients ask now and then
	feeds   feedRoom // what waits for clients that watch
	search  chan nothing
	meters  meters // what sandboxes had used when somebody looked last
	builds  builds // templates that are being made
	started time.Time
}

// action answers one call. An error of it is told in the form of its route.
type action func(c *call) error

// New returns the face.
func New(cfg Config) *Handler {
	h := &Handler{cfg: cfg.withDefaults(), control: http.NewServeMux(), code: http.NewServeMux(), envd: map[string]action{}, builds: builds{most: maxKept}, started: time.Now().UTC(), search: make(chan nothing, 1)}
	for _, routes := range []map[string]action{controlRoutes(), templateRoutes(), volumeRoutes()} {
		for pattern, do := range routes {
			h.control.Handle(pattern, h.byKey(pattern, do))
		}
	}
	h.control.Handle(uploadRoute, h.upload())
	for pattern, do := range contentRoutes() {
		h.control.Handle(pattern, h.byVolumeToken(pattern, do))
	}
	h.control.Handle("/", h.noRoute())
	for pattern, do := range interpreterRoutes() {
		h.code.Handle(pattern, h.byToken(pattern, do))
	}
	h.code.Handle("/", h.noRoute())
	h.envd["GET /health"] = (*call).health
	maps.Copy(h.envd, processCalls())
	maps.Copy(h.envd, filesystemCalls())
	maps.Copy(h.envd, fileRoutes())
	return h
}

// call is one request on its way.
type call struct {
	h        *Handler
	w        *answerWriter
	r        *http.Request
	who      cove.Principal
	platform cove.Platform
	memory   *intake.Body // what its body takes
	read     atomic.Bool  // the body has been read whole
	id       cove.ID      // of the sandbox; "" in the control API
	caller   string       // the caller that the token of a sandbox names; "" for the session's owner
	user     string       // whom the call names, "" for the usual one
	unshown  bool         // it has no token, which calls to public traffic need not have
}

// answerWriter knows what was answered.
type answerWriter struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *answerWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p) //nolint:gosec // what comes out of a sandbox goes out as an attachment
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// roots are the first parts of the paths that are ours on a plain address.
var roots = []string{
	"/sandboxes", "/v2/", "/v3/", "/templates", "/snapshots", "/volumes", "/volumecontent", "/secrets",
	"/files", "/execute", "/contexts", "/process.Process/", "/filesystem.Filesystem/",
}

// Owns reports whether a request is one for this face: by its host, its headers or its
// path.
func (h *Handler) Owns(r *http.Request) bool {
	if _, ok := h.below(r.Host); ok || len(r.Header.Values(sandboxHeader)) > 0 {
		return true
	}
	for _, root := range roots {
		if r.URL.Path == strings.TrimSuffix(root, "/") || strings.HasPrefix(r.URL.Path, strings.TrimSuffix(root, "/")+"/") {
			return true
		}
	}
	return false
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{h: h, w: &answerWriter{ResponseWriter: w}, r: r}
	defer c.rescue()
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	at, err := h.placeOf(r)
	own := at.id == "" || at.port == envdPort || at.port == interpreterPort
	if own && r.Body != http.NoBody {
		// Also for what is never read: the server throws it away, and must not wait
		// for it for ever.
		_ = c.control().SetReadDeadline(time.Now().Add(h.cfg.BodyTime))
	}
	switch escaped := r.URL.EscapedPath(); {
	case err != nil:
		c.apiFail(err)
	case at.id == "" && r.URL.Path == "/files":
		c.bySignature()
	case !own:
		c.id = at.id
		c.port()
	case path.Clean(escaped) != escaped:
		// The mux would redirect to the clean path, which may be another thing.
		h.noRoute().ServeHTTP(c.w, r)
	case at.id == "":
		h.control.ServeHTTP(c.w, r)
	case at.port == envdPort:
		c.id = at.id
		c.envd()
	default:
		h.code.ServeHTTP(c.w, r)
	}
}

// rescue keeps what goes wrong in one call from the others. What the server breaks
// off itself stays broken off.
func (c *call) rescue() {
	p := recover()
	switch {
	case p == nil:
		return
	case p != http.ErrAbortHandler: //nolint:errorlint,err113 // the very value is what the server looks for
		c.h.cfg.Logger.LogAttrs(c.r.Context(), slog.LevelError, "e2b request panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		if c.w.status == 0 {
			c.fail(cove.Errorf(cove.Internal, "internal error; the log has the cause"))
			return
		}
	}
	panic(http.ErrAbortHandler) //nolint:forbidigo // the server's own way to break a connection off
}

// noRoute answers for what is not there.
func (h *Handler) noRoute() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := h.resume(w, r)
		err := cove.Errorf(cove.NotFound, "there is no %s %s here", clip(r.Method), clip(r.URL.Path))
		if c.remote() {
			c.rpcFail(err) // with the status of what is not there, also to a stream
			return
		}
		c.apiFail(err)
	})
}

// port serves a port of a sandbox that is not ours.
func (c *call) port() {
	if c.h.cfg.Ports == nil || !c.id.Valid() {
		c.gone()
		return
	}
	c.h.cfg.Ports.ServeHTTP(c.w, c.r)
}

// bySignature serves a file whose sandbox neither host nor header names: the
// signature does, if it is good.
func (c *call) bySignature() {
	do, ok := c.h.envd[c.r.Method+" /files"]
	if !ok {
		c.h.noRoute().ServeHTTP(c.w, c.r)
		return
	}
	id, err := c.signedSandbox()
	if err != nil {
		c.fail(err)
		c.told(c.r.Context(), "/files", err, 0)
		return
	}
	c.id = id
	c.forCaller("/files", do)
}

// envd serves the calls of a sandbox's agent.
func (c *call) envd() {
	do, ok := c.h.envd[c.r.Method+" "+c.r.URL.Path]
	if !ok {
		c.h.noRoute().ServeHTTP(c.w, c.r)
		return
	}
	c.admit(c.r.URL.Path, envdPort, do)
}

// byKey serves a route of the control API for whoever's key is shown.
func (h *Handler) byKey(route string, do action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := h.resume(w, r)
		who, done, err := h.cfg.Authenticate(r.Context(), keyOf(r.Header))
		c.act(route, who, done, err, do)
	})
}

// byToken serves a route of a sandbox for the caller that its token names.
func (h *Handler) byToken(route string, do action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := h.resume(w, r)
		at, err := h.placeOf(r)
		if err != nil {
			c.apiFail(err)
			return
		}
		c.id = at.id
		c.admit(route, at.port, do)
	})
}

// admit serves a route of a sandbox. A call without a token, or with a wrong one, is
// refused before anything is looked up.
func (c *call) admit(route string, port int, do action) {
	if !c.id.Valid() {
		c.gone()
		return
	}
	err := c.admitted(port)
	if err == nil {
		c.user, err = userOf(c.r)
	}
	if err != nil {
		c.fail(err)
		c.told(c.r.Context(), route, err, 0)
		return
	}
	c.forCaller(route, do)
}

// forCaller serves a route of a sandbox as the key of the caller that was found out
// allows now: that of the session's owner where the call needed no token.
func (c *call) forCaller(route string, do action) {
	if !c.id.Valid() {
		c.gone()
		return
	}
	var (
		who  cove.Principal
		done func()
		err  error
	)
	if c.caller != "" {
		who, done, err = c.h.cfg.Key(c.r.Context(), c.caller)
		err = ofToken(err)
	} else {
		who, done, err = c.h.cfg.Owner(c.r.Context(), c.id)
	}
	if cove.CodeOf(err) == cove.NotFound {
		release(done)
		c.gone()
		return
	}
	c.act(route, who, done, err, do)
}

// ofToken is the error of a caller whom a token names: no key was shown with it.
func ofToken(err error) error {
	if cove.CodeOf(err) != cove.Unauthenticated {
		return err
	}
	return cove.Wrap(cove.Unauthenticated, err, "the key that this token or link belongs to was revoked or has expired").
		Remedy("connect with another key, which gives a new token")
}

// resume returns the call that a request belongs to.
func (h *Handler) resume(w http.ResponseWriter, r *http.Request) *call {
	aw, ok := w.(*answerWriter)
	if !ok {
		aw = &answerWriter{ResponseWriter: w}
	}
	return &call{h: h, w: aw, r: r}
}

func release(done func()) {
	if done != nil {
		done()
	}
}

// act does what a call is for, as somebody, and tells how it went.
func (c *call) act(route string, who cove.Principal, done func(), err error, do action) {
	defer release(done)
	started := time.Now()
	c.memory = c.h.cfg.Bodies.Body(c.payer(who))
	defer func() { c.memory.Free() }()
	ctx := c.r.Context()
	if err == nil {
		if c.h.cfg.Begin != nil {
			ctx = c.h.cfg.Begin(c.r, route)
		}
		if c.h.cfg.Watch != nil {
			var stop func()
			ctx, stop = c.h.cfg.Watch(ctx, who)
			defer stop()
		}
		c.r, c.who, c.platform = c.r.WithContext(ctx), who, c.h.cfg.Platform(who)
		if c.unshown {
			err = c.public()
		}
		if err == nil {
			err = c.permitted(route)
		}
		if err == nil {
			err = do(c)
		}
	}
	if err != nil {
		c.fail(err)
	}
	c.told(ctx, route, err, time.Since(started))
}

// payer is the principal that the body of a call is charged to. Calls without a token
// share one that is no key, so that they cannot use up the share of the owner.
func (c *call) payer(who cove.Principal) cove.Principal {
	if c.unshown {
		return cove.Principal{}
	}
	return who
}

// fail answers with an error in the form of the route, unless an answer has begun, and
// whether or not the body has been read.
func (c *call) fail(err error) { c.refuse(func() { c.respond(err) }) }

// refuse calls what answers with an error, whether or not the body has been read.
func (c *call) refuse(answer func()) {
	if c.read.Load() || c.r.Body == http.NoBody || c.w.status != 0 {
		answer()
		return
	}
	intake.Refuse(c.w, c.r, min(intake.Linger, c.h.cfg.Stall), answer)
}

// respond is fail where nothing of a body is left. A sandbox that is not there is told
// alike on all of its ports.
func (c *call) respond(err error) {
	switch {
	case c.id != "" && lost(err):
		c.gone()
	case !c.remote():
		c.apiFail(err)
	case strings.HasPrefix(c.r.Header.Get("Content-Type"), streamType):
		c.streamFail(err)
	default:
		c.rpcFail(err)
	}
}

// remote reports whether the call is one of Connect's.
func (c *call) remote() bool {
	return strings.HasPrefix(c.r.URL.Path, "/process.") || strings.HasPrefix(c.r.URL.Path, "/filesystem.")
}

func (c *call) told(ctx context.Context, route string, err error, took time.Duration) {
	level := slog.LevelDebug
	if shapeOf(err).status >= http.StatusInternalServerError && err != nil {
		level = slog.LevelError
	}
	c.h.cfg.Logger.LogAttrs(ctx, level, "e2b request", slog.String("route", route), slog.Int("status", c.w.status), slog.Duration("took", took), slog.Any("error", err))
	if c.h.cfg.End != nil {
		c.h.cfg.End(ctx, Ending{Route: route, Status: c.w.status, Err: err, Took: took})
	}
}
