package httpapi

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/wire"
)

// StatusClientGone is the status of a request whose caller went away; nobody
// reads it but the log.
const StatusClientGone = 499

// Reasons that only this package gives.
const (
	reasonNoRoute  = "no_such_route"
	reasonNoMethod = "no_such_method"
	reasonNoRange  = "no_such_range"
)

type status struct {
	number int
	title  string
}

// statuses is the one table from a code to its HTTP status.
var statuses = map[cove.Code]status{
	cove.Invalid:         {http.StatusBadRequest, "The request is malformed"},
	cove.Unauthenticated: {http.StatusUnauthorized, "No valid key"},
	cove.Denied:          {http.StatusForbidden, "Not allowed"},
	cove.NotFound:        {http.StatusNotFound, "Not found"},
	cove.Conflict:        {http.StatusConflict, "Not in this state"},
	cove.Exhausted:       {http.StatusTooManyRequests, "No room now"},
	cove.Unsupported:     {http.StatusNotImplemented, "Not supported here"},
	cove.Unavailable:     {http.StatusServiceUnavailable, "Not available now"},
	cove.Timeout:         {http.StatusGatewayTimeout, "Out of time"},
	cove.Canceled:        {StatusClientGone, "The caller went away"},
	cove.Internal:        {http.StatusInternalServerError, "Internal error"},
}

// finer are the reasons whose status is another than that of their code.
var finer = map[string]status{
	cove.ReasonFileTooLarge:  {http.StatusRequestEntityTooLarge, "The file is too large"},
	cove.ReasonWorkspaceFull: {http.StatusInsufficientStorage, "The workspace is full"},
	cove.ReasonTenantDisk:    {http.StatusInsufficientStorage, "The tenant keeps too much"},
	cove.ReasonDiskReserve:   {http.StatusInsufficientStorage, "The disk is nearly full"},
	intake.ReasonTooLarge:    {http.StatusRequestEntityTooLarge, "The request is too large"},
	reasonNoMethod:           {http.StatusMethodNotAllowed, "No such method"},
	reasonNoRange:            {http.StatusRequestedRangeNotSatisfiable, "No such range"},
}

func statusOf(err error) status {
	if s, ok := finer[cove.ReasonOf(err)]; ok {
		return s
	}
	if s, ok := statuses[cove.CodeOf(err)]; ok {
		return s
	}
	return statuses[cove.Internal]
}

func problemOf(err error, requestID string) wire.Problem {
	s := statusOf(err)
	p := wire.ProblemOf(err, requestID)
	p.Type, p.Title, p.Status = "urn:cove:problem:"+string(p.Code), s.title, s.number
	return p
}

// respond answers with err, unless an answer has begun.
func (c *call) respond(err error) {
	p := problemOf(err, c.id)
	c.note(err, p)
	if c.w.status != 0 {
		return
	}
	body := marshalProblem(p)
	h := c.w.Header()
	h.Set("Content-Type", wire.ProblemType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	switch p.Status {
	case http.StatusTooManyRequests:
		h.Set("Retry-After", strconv.Itoa(retryAfter(p.Details)))
	case http.StatusServiceUnavailable:
		if _, ok := p.Details["retry_after"]; ok { // of others nobody knows when they are over
			h.Set("Retry-After", strconv.Itoa(retryAfter(p.Details)))
		}
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="cove"`)
	}
	c.deadline()
	c.w.WriteHeader(p.Status)
	_, _ = c.w.Write(body) // the client may be gone
}

// marshalProblem writes p, without its details where those are not JSON.
func marshalProblem(p wire.Problem) []byte {
	body, err := json.Marshal(p)
	if err != nil {
		p.Details = nil
		body, _ = json.Marshal(p) // texts and numbers always are
	}
	return append(body, '\n')
}

// retryAfter is the number of whole seconds that the details name, or 1.
func retryAfter(details wire.Details) int {
	switch v := details["retry_after"].(type) {
	case int:
		return max(1, v)
	case float64:
		return max(1, int(min(v, 86400)+0.999))
	case time.Duration:
		return max(1, int((v+time.Second-1)/time.Second))
	}
	return 1
}

// note logs the cause of an error that is not the caller's to mend.
func (c *call) note(err error, p wire.Problem) {
	c.failed = err
	if p.Status < http.StatusInternalServerError || p.Code == cove.Exhausted || p.Code == cove.Unsupported {
		return
	}
	level := slog.LevelWarn
	if p.Code == cove.Internal {
		level = slog.LevelError
	}
	c.api.Logger.LogAttrs(c.r.Context(), level, "request failed",
		slog.String("request_id", c.id), slog.String("code", string(p.Code)), slog.String("route", c.route), slog.String("error", err.Error()))
}
