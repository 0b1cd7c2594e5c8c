package client

import (
	"context"
	"io"
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type trials struct {
	c  *Client
	id cove.ID
}

// Run implements [cove.Trials]. Input is sent as Exec does.
func (t trials) Run(ctx context.Context, req cove.TrialRequest) (*cove.TrialResult, error) {
	if err := oneCommand(req.ExecRequest); err != nil {
		return nil, err
	}
	stdin, ok := inline(req.Stdin)
	w := wire.TrialRequestOf(req, stdin)
	a := ask{method: http.MethodPost, path: of(t.id, "/trial"), body: w, header: once(req.IdempotencyKey)}
	switch {
	case !ok:
		body, err := following(ctx, w, req.Stdin)
		if err != nil {
			return nil, err
		}
		a.body, a.stream = nil, body
		a.header["Content-Type"] = wire.ExecStream
		out, err := t.stream(ctx, a, req.OnOutput)
		return out, body.blame(ctx, err)
	case req.OnOutput != nil:
		return t.stream(ctx, a, req.OnOutput)
	}
	return t.trial(ctx, a)
}

// stream runs a program and hands its output on as it comes.
func (t trials) stream(ctx context.Context, a ask, out func(cove.Chunk)) (*cove.TrialResult, error) {
	var done *cove.TrialResult
	for f, err := range t.c.follow(ctx, a, wire.OnTrial) {
		if err != nil {
			return nil, err
		}
		if err := t.c.chunk(f, out); err != nil {
			return nil, err
		}
		if f.name == wire.OnTrial {
			w, err := parse[wire.Trial](t.c, f)
			if err != nil {
				return nil, err
			}
			done = w.Cove()
		}
	}
	return done, nil
}

func (t trials) trial(ctx context.Context, a ask) (*cove.TrialResult, error) {
	w, err := get[wire.Trial](ctx, t.c, a)
	if err != nil {
		return nil, err
	}
	return w.Cove(), nil
}

// Get implements [cove.Trials].
func (t trials) Get(ctx context.Context) (*cove.TrialResult, error) {
	return t.trial(ctx, ask{method: http.MethodGet, path: of(t.id, "/trial")})
}

// Before implements [cove.Trials].
func (t trials) Before(ctx context.Context, name string) ([]byte, error) {
	body, err := files(t).download(ctx, ask{method: http.MethodGet, path: of(t.id, "/trial/before"), query: named(name), accept: asBytes})
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // only read
	content, err := io.ReadAll(io.LimitReader(body, int64(cove.MaxTrialFile)+1))
	if err == nil && len(content) > int(cove.MaxTrialFile) {
		err = cove.Errorf(cove.Unavailable, "the answer is longer than a file that is on trial can be").Reason(cove.ReasonConnection)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// Commit implements [cove.Trials].
func (t trials) Commit(ctx context.Context) error {
	return t.c.tell(ctx, ask{method: http.MethodPost, path: of(t.id, "/trial/commit")})
}

// Discard implements [cove.Trials].
func (t trials) Discard(ctx context.Context) error {
	return t.c.tell(ctx, ask{method: http.MethodPost, path: of(t.id, "/trial/discard")})
}
