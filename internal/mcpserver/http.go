package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// Handler serves MCP over streamable HTTP, at whatever path it is put.
type Handler struct {
	face     *face
	sdk      http.Handler
	platform func(cove.Principal) cove.Platform
	who      func(*http.Request) (cove.Principal, func(), error)
}

// HTTP returns a handler for clients that who knows: each request is asked for its
// key, and does what it does through the platform of its principal. An MCP session
// belongs to the principal that began it. done, if who gives one, is called when the
// request is over.
func HTTP(cfg Config, platform func(cove.Principal) cove.Platform, who func(r *http.Request) (p cove.Principal, done func(), err error)) *Handler {
	h := &Handler{face: newFace(cfg, nil), platform: platform, who: who}
	streams := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.face.server }, &mcp.StreamableHTTPOptions{
		Logger: quiet(h.face.Logger), SessionTimeout: h.face.Idle, MaxRequestBodyBytes: maxMessage,
		DisableLocalhostProtection: true, // we look ourselves, and know the names of proxies
	})
	h.sdk = auth.RequireBearerToken(token, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(streams)
	return h
}

// Close ends all MCP sessions and what they have under way. Sandboxes stay as they
// are, until their own time is over.
func (h *Handler) Close(ctx context.Context) error {
	h.face.mu.Lock()
	h.face.leaving = true
	h.face.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for session, p := range h.face.all() {
			p.end()
			_ = session.Close() // it is over either way
		}
		h.face.wait.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// callerKey is under what the SDK carries a caller to the tools.
const callerKey = "cove"

type callerInContext struct{}

// token hands the SDK the caller that was found already.
func token(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	who, ok := ctx.Value(callerInContext{}).(caller)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: who.user(), Extra: map[string]any{callerKey: who}}, nil
}

// ServeHTTP answers one request, or has the server do so that has its MCP session.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mark := h.face.elsewhere(r)
	if mark == "" {
		h.serve(w, r)
		return
	}
	w = patient{w, http.NewResponseController(w)}
	if err := guard(r, h.face.Hosts); err != nil {
		fail(w, err)
		return
	}
	h.pass(w, r, mark)
}

// serve answers one request here.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	w = patient{w, http.NewResponseController(w)}
	if err := guard(r, h.face.Hosts); err != nil {
		refuse(w, r, err)
		return
	}
	p, done, err := h.who(r)
	if done != nil {
		defer done()
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	message := h.face.Bodies.Body(p)
	defer message.Free()
	who := caller{platform: h.platform(p), who: p, message: message}
	if r.Method == http.MethodPost {
		if who.size, err = receive(w, r, message); err != nil {
			refuse(w, r, err)
			return
		}
	}
	if peer := h.face.peerOf(r.Header.Get(sessionHeader), who); peer != nil {
		defer peer.arrive(h.face.Idle)()
		if r.Method == http.MethodDelete {
			peer.end() // the SDK would wait for its calls
		}
	}
	ctx, stop := h.face.Watch(context.WithValue(r.Context(), callerInContext{}, who), p)
	defer stop()
	r = r.WithContext(ctx)
	r.Header = r.Header.Clone()
	r.Header.Del("X-Api-Key") // what is known needs no secret any more
	r.Header.Set("Authorization", "Bearer known")
	h.sdk.ServeHTTP(w, r)
}

// receive reads the message whole, in a bounded time: the SDK would wait for it
// for ever.
func receive(w http.ResponseWriter, r *http.Request, message *intake.Body) (size int, err error) {
	control := http.NewResponseController(w)
	timed := control.SetReadDeadline(time.Now().Add(bodyTime)) == nil
	body, err := message.ReadAll(r.Context(), r.Body, r.ContentLength, maxMessage)
	if timed {
		_ = control.SetReadDeadline(time.Time{}) // it could be set
	}
	if err == nil {
		err = intake.CheckJSON(body)
	}
	if _, ours := errors.AsType[*cove.Error](err); err != nil && !ours {
		err = cove.Wrap(cove.Timeout, err, "the message did not arrive whole")
	}
	if err != nil {
		return 0, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return len(body), nil
}

// statuses are those of errors before a message is looked at.
var statuses = map[cove.Code]int{
	cove.Invalid: http.StatusBadRequest, cove.Unauthenticated: http.StatusUnauthorized, cove.Denied: http.StatusForbidden,
	cove.NotFound: http.StatusNotFound, cove.Conflict: http.StatusConflict, cove.Exhausted: http.StatusTooManyRequests,
	cove.Unsupported: http.StatusNotImplemented, cove.Unavailable: http.StatusServiceUnavailable,
	cove.Timeout: http.StatusRequestTimeout, cove.Canceled: http.StatusBadRequest, cove.Internal: http.StatusInternalServerError,
}

// refuse is fail where the client may still be sending a message.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Body == http.NoBody {
		fail(w, err)
		return
	}
	intake.Refuse(w, r, intake.Linger, func() { fail(w, err) })
}

// fail refuses a request before a message of it is looked at.
func fail(w http.ResponseWriter, err error) {
	x := faultOf(err)
	if x.Code == cove.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="cove"`)
	}
	if e, ok := errors.AsType[*cove.Error](err); ok {
		if after, ok := e.Details["retry_after"].(int); ok {
			w.Header().Set("Retry-After", strconv.Itoa(after))
		}
	}
	status := statuses[x.Code]
	if x.Reason == intake.ReasonTooLarge {
		status = http.StatusRequestEntityTooLarge
	}
	text := lines(x.Message, x.Remedy) + "\n"
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the client may be gone
}

// patient gives a client a while to take each piece of an answer, and no more.
type patient struct {
	http.ResponseWriter

	control *http.ResponseController
}

// Write sends a piece.
func (p patient) Write(data []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(stall)) // where none can be set, the client's connection ends it
	return p.ResponseWriter.Write(data)
}

// Unwrap lets the SDK flush.
func (p patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
