//go:build linux

package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/cove-sandbox/cove"
)

// unreachable is the error where no answer came.
func unreachable(ctx context.Context, whom string, cause error) error {
	if why := context.Cause(ctx); why != nil && !errors.Is(why, errSlow) {
		return why
	}
	if u, ok := errors.AsType[*url.Error](cause); ok {
		cause = u.Err // without the address, which may hold a user's name
	}
	return cove.Wrap(cove.Unavailable, cause, "%s does not answer", whom).Reason(cove.ReasonConnection).
		Remedy("check E2B_DOMAIN, E2B_API_URL and E2B_SANDBOX_URL, and that this machine reaches them")
}

// stranger is the error where something else than E2B answers.
func stranger(whom string, cause error) error {
	return cove.Wrap(cove.Unavailable, cause, "%s answers, and not as E2B does", whom).Reason(cove.ReasonConnection).
		Remedy("check E2B_DOMAIN, E2B_API_URL and E2B_SANDBOX_URL: something else is there, such as a proxy's page")
}

// refused is the error for an answer that is none of the good ones. What the
// server says about it is for the log.
func refused(whom string, res *http.Response, said []byte) error {
	cause := fmt.Errorf("status %d: %.200q", res.StatusCode, said)
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return cove.Wrap(cove.Unavailable, cause, "%s does not accept the key in E2B_API_KEY", whom).Reason(cove.ReasonConfiguration).
			Remedy("set E2B_API_KEY to a key of your team, from https://%s/dashboard", defaultDomain)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		if !ours(said) {
			return noRoute{stranger(whom, cause)}
		}
		return cove.Wrap(cove.NotFound, cause, "%s does not know it", whom)
	case http.StatusConflict:
		return cove.Wrap(cove.Conflict, cause, "%s says that it is in another state", whom)
	case http.StatusTooManyRequests:
		return cove.Wrap(cove.Exhausted, cause, "%s allows no more for now", whom).Reason(cove.ReasonCapacity).
			With("retry_after", retryAfter(res.Header)).Remedy("close sandboxes, or raise the limits of your team at E2B")
	case http.StatusBadGateway:
		if ours(said) {
			return cove.Wrap(cove.NotFound, cause, "the machine at E2B is gone").Reason(cove.ReasonNodeLost)
		}
	case http.StatusBadRequest:
		if noMethod(said) {
			return noRoute{stranger(whom, cause)}
		}
		return cove.Wrap(cove.Unavailable, cause, "%s does not take the request", whom).
			Remedy("check E2B_TEMPLATE and E2B_TIMEOUT_SEC against what your team may use")
	}
	if res.StatusCode >= http.StatusInternalServerError {
		return cove.Wrap(cove.Unavailable, cause, "%s has trouble of its own (status %d)", whom, res.StatusCode).Reason(cove.ReasonConnection).
			Remedy("try again later; https://status.e2b.dev tells of E2B's own")
	}
	return stranger(whom, cause)
}

// ours reports whether a body is an error as E2B writes them: with a code, a
// number from the API and a word from a machine.
func ours(said []byte) bool {
	var e struct {
		Code any `json:"code"`
	}
	return json.Unmarshal(said, &e) == nil && e.Code != nil
}

// noMethod reports whether a body says that a path takes no such method: servers
// that check requests against a description of the API say so as a bad request.
func noMethod(said []byte) bool {
	var e struct {
		Message string `json:"message"`
	}
	return json.Unmarshal(said, &e) == nil && strings.Contains(strings.ToLower(e.Message), "method not allowed")
}

// noRoute marks the error of a server that has no such route.
type noRoute struct{ error }

func (e noRoute) Unwrap() error { return e.error }

func isNoRoute(err error) bool {
	_, ok := errors.AsType[noRoute](err)
	return ok
}
