package telemetry

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// retryHeader is what a client sends with an action that it tries again in a
// new session, because the old one had expired or was lost.
const retryHeader = "Cove-Retry"

// retry marks the context of such a request.
type retry struct{}

// Request is told of a request that showed a valid key, and returns the context
// to go on with. It honours the trace that the caller names in traceparent.
func (t *Telemetry) Request(r *http.Request, route string) context.Context {
	ctx := r.Context()
	if r.Header.Get(retryHeader) != "" {
		ctx = context.WithValue(ctx, retry{}, true)
	}
	ctx = context.WithValue(ctx, served{}, new(atomic.Pointer[string]))
	return t.tracing.request(ctx, r, route)
}

// served is where the context of a request has which provider served it.
type served struct{}

// serves takes down which provider serves what a request does.
func serves(ctx context.Context, provider string) {
	if by, ok := ctx.Value(served{}).(*atomic.Pointer[string]); ok && provider != "" {
		by.Store(&provider)
	}
}

// Provider returns the provider whose sandbox a request was about, as far as that
// is known by now, or "". The context is the one that Request gave.
func (t *Telemetry) Provider(ctx context.Context) string {
	if by, ok := ctx.Value(served{}).(*atomic.Pointer[string]); ok {
		if name := by.Load(); name != nil {
			return *name
		}
	}
	return ""
}

// methods are the values of the label method.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// Answer is how a request went.
type Answer struct {
	Method string
	Route  string // its pattern, or "" for a path that is no route
	Status int
	Err    error // that was answered with, if any
	Wall   time.Duration

	Principal string
	Tenant    string
	Session   cove.ID // that the path names, if it has the form of an id
}

// Answered is told of the end of every request, with the context that it went
// on with.
func (t *Telemetry) Answered(ctx context.Context, a Answer) {
	route := a.Route
	if route == "" {
		route = "none"
	}
	t.metrics.requests.WithLabelValues(route, oneOf(methods, a.Method), strconv.Itoa(a.Status)).Inc()
	t.metrics.requestTime.WithLabelValues(route).Observe(a.Wall.Seconds())
	if e, ok := beforeTheRoad(a); ok {
		if limit := limitOf("", e.Reason); limit != "" {
			t.metrics.limits.WithLabelValues("none", limit).Inc()
		}
		if invalid(e) {
			t.metrics.refusals.WithLabelValues("none", "request").Inc()
		}
		t.events.ended(ctx, e)
	}
	if a.Principal != "" {
		t.tracing.answered(ctx, a.Status)
	}
}

// beforeTheRoad makes an ending of a request that was refused before it became
// an action, such as a body that is not JSON. An action names its verb in its
// error, and was told of already.
func beforeTheRoad(a Answer) (cove.Ending, bool) {
	err, ok := errors.AsType[*cove.Error](a.Err)
	if !ok || err.Op != "" {
		return cove.Ending{}, false
	}
	now := time.Now()
	return cove.Ending{
		Observed: cove.Observed{Principal: a.Principal, Tenant: a.Tenant, Session: a.Session},
		Code:     err.Code, Reason: cove.ReasonOf(err), Began: now.Add(-a.Wall), Ended: now,
	}, true
}
