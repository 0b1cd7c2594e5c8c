package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// LinkRequest asks for a link.
type LinkRequest struct {
	TTLSeconds *float64 `json:"ttl_seconds,omitempty" jsonschema:"how long it is good for; left out, what is usual for its kind"`
}

// LinkRequestOf returns the form of a request for a link.
func LinkRequestOf(ttl time.Duration) LinkRequest {
	return LinkRequest{TTLSeconds: optional(ttl, time.Second)}
}

// TTL returns how long the link is to be good for.
func (w LinkRequest) TTL() (time.Duration, error) {
	return span("ttl_seconds", w.TTLSeconds, time.Second)
}

// FileLinkRequest asks for a link to a file.
type FileLinkRequest struct {
	LinkRequest

	Path       string `json:"path,omitempty" jsonschema:"relative paths start in the workspace"`
	PathBase64 []byte `json:"path_base64,omitempty" jsonschema:"in the place of path where that is not UTF-8"`
	Method     string `json:"method,omitempty" jsonschema:"what the link is for: GET reads the file, PUT replaces it; left out, GET"`
}

// FileLinkRequestOf returns the form of a request for a link to a file.
func FileLinkRequestOf(method string, r cove.FileLink) FileLinkRequest {
	w := FileLinkRequest{LinkRequest: LinkRequestOf(r.TTL), Method: method}
	w.Path, w.PathBase64 = names(r.Path)
	return w
}

// Cove returns the platform's own form for a session, and whether the link is to
// replace the file.
func (w FileLinkRequest) Cove(session cove.ID) (r cove.FileLink, put bool, err error) {
	switch w.Method {
	case "", "GET":
	case "PUT":
		put = true
	default:
		return r, false, cove.InvalidField("method", "%.40q is no use of a link; use GET or PUT", w.Method)
	}
	r = cove.FileLink{Session: session, Path: unnames(w.Path, w.PathBase64)}
	r.TTL, err = w.TTL()
	return r, put, err
}
