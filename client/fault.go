package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// gone is the error of a call whose context has ended, or nil.
func gone(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if ours, ok := errors.AsType[*cove.Error](context.Cause(ctx)); ok {
		return ours
	}
	return cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err))
}

// unreachable is the error of a request that got no answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if over := gone(ctx); over != nil {
		return over
	}
	if ours, ok := errors.AsType[*cove.Error](err); ok {
		return ours // from a reader that the caller gave
	}
	return cove.Wrap(cove.Unavailable, err, "cove at %s cannot be reached", c.name).Reason(cove.ReasonConnection).Remedy("%s", c.remedy)
}

// broken is the error of an answer that ended before it was whole.
func (c *Client) broken(ctx context.Context, err error) error {
	if over := gone(ctx); over != nil {
		return over
	}
	return cove.Wrap(cove.Unavailable, err, "the connection to %s broke off before the answer was whole", c.name).Reason(cove.ReasonConnection).
		Remedy("look whether it was done before you ask again")
}

// foreign is the error of an answer that Cove does not give.
func (c *Client) foreign(resp *http.Response) error {
	return cove.Errorf(cove.Unavailable, "%s answered %d with %.60q, which is not what Cove answers", c.name, resp.StatusCode, resp.Header.Get("Content-Type")).Reason(cove.ReasonConnection).
		Remedy("check the URL: another server, a proxy or another version may answer there")
}

// problem is the error that an answer tells of.
func (c *Client) problem(ctx context.Context, resp *http.Response) error {
	if resp.StatusCode == http.StatusRequestHeaderFieldsTooLarge {
		// Answered before anything of ours has seen the request.
		return cove.Errorf(cove.Invalid, "a name, a pattern or a header of the request is too long")
	}
	if mediaType(resp) != wire.ProblemType {
		return c.foreign(resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem+1))
	if err != nil {
		return c.broken(ctx, err)
	}
	var p wire.Problem
	if len(data) > maxProblem || json.Unmarshal(data, &p) != nil || !p.Known() {
		return c.foreign(resp)
	}
	return p.Cove()
}
