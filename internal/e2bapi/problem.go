package e2bapi

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/cove-sandbox/cove"
)

// notFound is what E2B says of a sandbox that is not there.
const notFound = "The sandbox was not found"

// statusGone is the status of a request whose caller went away; nobody reads it.
const statusGone = 499

// shape is what a code is called: as a status of the control API, and as a word and a
// status of Connect.
type shape struct {
	status int
	word   string
	rpc    int
}

// shapes is the one table from a code to what clients are told.
var shapes = map[cove.Code]shape{
	cove.Invalid:         {http.StatusBadRequest, "invalid_argument", http.StatusBadRequest},
	cove.Unauthenticated: {http.StatusUnauthorized, "unauthenticated", http.StatusUnauthorized},
	cove.Denied:          {http.StatusForbidden, "permission_denied", http.StatusForbidden},
	cove.NotFound:        {http.StatusNotFound, "not_found", http.StatusNotFound},
	cove.Conflict:        {http.StatusConflict, "failed_precondition", http.StatusBadRequest},
	cove.Exhausted:       {http.StatusTooManyRequests, "resource_exhausted", http.StatusTooManyRequests},
	cove.Unsupported:     {http.StatusBadRequest, "unimplemented", http.StatusNotImplemented},
	cove.Unavailable:     {http.StatusServiceUnavailable, "unavailable", http.StatusServiceUnavailable},
	cove.Timeout:         {http.StatusGatewayTimeout, "deadline_exceeded", http.StatusGatewayTimeout},
	cove.Canceled:        {statusGone, "canceled", statusGone},
	cove.Internal:        {http.StatusInternalServerError, "internal", http.StatusInternalServerError},
}

func shapeOf(err error) shape {
	switch cove.ReasonOf(err) {
	case cove.ReasonTenantDisk, cove.ReasonDiskReserve: // waiting does not help
		return shape{http.StatusInsufficientStorage, shapes[cove.Exhausted].word, shapes[cove.Exhausted].rpc}
	case cove.ReasonOutcomeUnknown: // clients take "unavailable" for a sandbox that has ended, and make another
		return shape{shapes[cove.Unavailable].status, "unknown", http.StatusInternalServerError}
	}
	if s, ok := shapes[cove.CodeOf(err)]; ok {
		return s
	}
	return shapes[cove.Internal]
}

// apiProblem is an error of the control API and of the routes that are plain HTTP.
type apiProblem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// rpcProblem is an error of Connect.
type rpcProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func rpcProblemOf(err error) rpcProblem {
	if lost(err) {
		return rpcProblem{Code: shapes[cove.Unavailable].word, Message: notFound}
	}
	return rpcProblem{Code: shapeOf(err).word, Message: textOf(err)}
}

func apiProblemOf(err error) apiProblem { return apiProblem{shapeOf(err).status, textOf(err)} }

// textOf is what a client is shown of an error: these have one text, and the remedy
// must be in it.
func textOf(err error) string {
	text := cove.MessageOf(err)
	if remedy := cove.RemedyOf(err); remedy != "" {
		text += "; " + remedy
	}
	return text
}

// lost reports whether an error says that the sandbox is not there, or does not run.
func lost(err error) bool {
	switch cove.ReasonOf(err) {
	case cove.ReasonSessionExpired, cove.ReasonSessionClosed, cove.ReasonNodeLost, cove.ReasonVolumeOverrun, cove.ReasonKernelMemory, cove.ReasonNoSession,
		cove.ReasonSessionStopped, cove.ReasonSessionPaused:
		return true
	}
	return false
}

// maxRetryAfter bounds how long a client is told to wait.
const maxRetryAfter = 60

// apiFail answers a call of the control API, or a plain route, with an error.
func (c *call) apiFail(err error) {
	p := apiProblemOf(err)
	switch p.Code {
	case http.StatusTooManyRequests:
		c.w.Header().Set("Retry-After", strconv.Itoa(waitOf(err)))
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		// Clients that try again by themselves would only say later what is wrong.
		c.w.Header().Set("Should-Retry", "false")
	}
	c.answer(p.Code, p)
}

// waitOf is the seconds after which it is worth to try again.
func waitOf(err error) int {
	var wait float64
	if e, ok := errors.AsType[*cove.Error](err); ok {
		switch n := e.Details["retry_after"].(type) {
		case int:
			wait = float64(n)
		case float64:
			wait = n
		}
	}
	return int(min(max(math.Ceil(wait), 1), maxRetryAfter))
}

// rpcFail answers a unary call of Connect with an error.
func (c *call) rpcFail(err error) {
	c.answer(shapeOf(err).rpc, rpcProblemOf(err))
}

// gone answers for a sandbox that is not there, or does not run.
func (c *call) gone() {
	c.answer(http.StatusBadGateway, struct {
		Sandbox string `json:"sandboxId"`
		apiProblem
	}{clip(string(c.id)), apiProblem{http.StatusBadGateway, notFound}})
}

// answer writes a value as JSON, unless an answer has begun.
func (c *call) answer(status int, value any) {
	if c.w.status != 0 {
		return
	}
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"code":500,"message":"the answer cannot be written"}`)
	}
	header := c.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // the client may be gone
}
