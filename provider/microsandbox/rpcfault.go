//go:build linux

package microsandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/cove-sandbox/cove"
)

// The server's own codes, and those of JSON-RPC that it uses.
const (
	codeCredentials = 1001
	codeToken       = 1004
	codeParams      = 2001
	codeNamespace   = 3001
	codeInternal    = 5002

	codeNoRequest = -32600
	codeNoMethod  = -32601
)

// errBroken marks the answer by which the server says that something failed, and
// not what: an unknown sandbox, a program that cannot be started and a fault of the
// sandbox all look the same.
var errBroken = errors.New("internal server error")

// said is both forms of an answer: the server's own error beside an HTTP status,
// and the envelope of JSON-RPC.
type said struct {
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Code   *int64          `json:"code"`
	ID     json.RawMessage `json:"id"`
}

// result reads an answer.
func (c *rpcClient) result(method string, id int64, status int, body []byte) (json.RawMessage, error) {
	var s said
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, c.stranger(status, body)
	}
	failed := len(s.Error) > 0 && !bytes.Equal(s.Error, []byte("null"))
	switch {
	case failed:
		return nil, c.failure(method, status, s)
	case status != http.StatusOK || len(s.Result) == 0:
		return nil, c.stranger(status, body)
	case string(s.ID) != fmt.Sprint(id):
		return nil, cove.Errorf(cove.Unavailable, "the server at %s answered another question than was asked", c.shown()).Reason(cove.ReasonConnection)
	}
	return s.Result, nil
}

// failure turns either form of an error into ours.
func (c *rpcClient) failure(method string, status int, s said) error {
	var code int64
	var text string
	var envelope struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
	switch {
	case s.Code != nil && json.Unmarshal(s.Error, &text) == nil:
		code = *s.Code
	case json.Unmarshal(s.Error, &envelope) == nil:
		code, text = envelope.Code, envelope.Message
	default:
		return c.stranger(status, s.Error)
	}
	cause := fmt.Errorf("%s: status %d, code %d: %.300q", method, status, code, c.without(text))
	switch code {
	case codeCredentials:
		return cove.Wrap(cove.Unavailable, cause, "the microsandbox server at %s wants a key, and MSB_API_KEY is missing or is none", c.shown()).
			Reason(cove.ReasonConfiguration).Remedy("make one with msb server keygen and set MSB_API_KEY")
	case codeToken:
		return cove.Wrap(cove.Unavailable, cause, "the microsandbox server at %s does not accept the key in MSB_API_KEY: it is another server's, or has expired", c.shown()).
			Reason(cove.ReasonConfiguration).Remedy("make a new one with msb server keygen and set MSB_API_KEY")
	case codeNamespace:
		return cove.Wrap(cove.Denied, cause, "the key in MSB_API_KEY is not for the namespace in MSB_NAMESPACE").
			Reason(cove.ReasonConfiguration).Remedy("set MSB_NAMESPACE to the key's, or make a key for it with msb server keygen --namespace")
	case codeParams:
		if strings.Contains(text, "does not exist") || strings.Contains(text, "not found") {
			return cove.Wrap(cove.NotFound, cause, "the microsandbox server does not know the namespace or the sandbox")
		}
		return cove.Wrap(cove.Invalid, cause, "the microsandbox server refused the request").
			Reason(cove.ReasonConfiguration).Remedy("check MSB_NAMESPACE and MSB_IMAGE; the log has what the server said")
	case codeNoMethod, codeNoRequest:
		return cove.Wrap(cove.Unavailable, cause, "what answers at %s is not a microsandbox server of version 0.1 or 0.2", c.shown()).
			Reason(cove.ReasonConfiguration).Remedy("check MSB_SERVER_URL; later versions have no server: set MSB_TRANSPORT=cli")
	case codeInternal:
		return cove.Wrap(cove.Unavailable, errors.Join(errBroken, cause), "the microsandbox server could not do this, and does not say why").
			Remedy("look at the server's log")
	}
	return cove.Wrap(cove.Unavailable, cause, "the microsandbox server could not do this").Remedy("look at the server's log")
}

// stranger is the error for an answer that no microsandbox server gives.
func (c *rpcClient) stranger(status int, body []byte) error {
	return cove.Wrap(cove.Unavailable, fmt.Errorf("status %d: %.200q", status, c.without(string(body))), "what answers at %s is not a microsandbox server", c.shown()).
		Reason(cove.ReasonConfiguration).Remedy("check MSB_SERVER_URL: it may name a proxy or another server")
}
