package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
	"github.com/cove-sandbox/cove/retry"
)

const (
	// maxAnswer bounds an answer that is held in memory. Files and streams are not.
	maxAnswer = 64 << 20
	// maxProblem bounds the answer of a request that went wrong.
	maxProblem = 1 << 20
)

const (
	asJSON   = "application/json"
	asEvents = "text/event-stream"
	asBytes  = "application/octet-stream"
)

// ask is one request.
type ask struct {
	method string
	path   path
	query  url.Values
	header map[string]string
	body   any       // sent in JSON
	stream io.Reader // sent as it is, in the place of body
	accept string    // what the answer must be; "" means JSON or nothing
}

// path is an address in parts. The even ones are fixed; the odd ones come from
// callers and may hold anything but nothing.
type path []string

func (p path) join() (string, error) {
	var b strings.Builder
	for i, part := range p {
		if i%2 == 0 {
			b.WriteString(part)
			continue
		}
		if part == "" {
			err := cove.Errorf(cove.NotFound, "no name was given, and nothing is without one")
			if p[0] == sandboxes && i == 1 {
				err = err.Reason(cove.ReasonNoSession)
			}
			return "", err
		}
		escaped := url.PathEscape(part)
		if part == "." || part == ".." {
			escaped = strings.ReplaceAll(part, ".", "%2E") // a plain one would mean another path
		}
		b.WriteString(escaped)
	}
	return b.String(), nil
}

// of is the path of a thing of a session.
func of(id cove.ID, rest string) path { return path{sandboxes, string(id), rest} }

// sandboxes is where the path of a session begins.
const sandboxes = "/api/sandboxes/"

// do sends a request and returns an answer that is a success. The caller
// closes its body.
func (c *Client) do(ctx context.Context, a ask) (*http.Response, error) {
	req, err := c.request(ctx, a)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices || resp.StatusCode < http.StatusOK && resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close() //nolint:errcheck // only read
		return nil, c.problem(ctx, resp)
	}
	if a.accept != "" && mediaType(resp) != a.accept {
		defer resp.Body.Close() //nolint:errcheck // only read
		return nil, c.foreign(resp)
	}
	return resp, nil
}

func (c *Client) request(ctx context.Context, a ask) (*http.Request, error) {
	at, err := a.path.join()
	if err != nil {
		return nil, err
	}
	at = c.base + at
	if len(a.query) > 0 {
		at += "?" + a.query.Encode()
	}
	body := a.stream
	if a.body != nil {
		data, err := wire.Encode(a.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, a.method, at, body)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the request to %s cannot be made", c.name)
	}
	if a.body != nil {
		req.Header.Set("Content-Type", asJSON)
	}
	if a.accept != "" {
		req.Header.Set("Accept", a.accept)
	}
	for name, value := range a.header {
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, cove.InvalidField(name, "holds control characters, which a remote platform cannot take")
		}
		req.Header.Set(name, value)
	}
	if reason := retry.Reason(ctx); reason != "" {
		req.Header.Set(wire.RetryHeader, reason)
	}
	if c.principal != "" {
		req.Header.Set(wire.PrincipalHeader, c.principal)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return req, nil
}

func mediaType(resp *http.Response) string {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // "" fits nothing
	return media
}

// get sends a request and reads its JSON answer.
func get[W any](ctx context.Context, c *Client, a ask) (W, error) {
	var w W
	a.accept = asJSON
	resp, err := c.do(ctx, a)
	if err != nil {
		return w, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return w, c.broken(ctx, err)
	}
	if len(data) > maxAnswer || json.Unmarshal(data, &w) != nil {
		return w, c.foreign(resp)
	}
	return w, nil
}

// tell sends a request that has no answer.
func (c *Client) tell(ctx context.Context, a ask) error {
	resp, err := c.do(ctx, a)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusNoContent {
		return c.foreign(resp)
	}
	return nil
}
