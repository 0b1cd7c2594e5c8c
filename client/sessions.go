package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type sessions struct{ c *Client }

// session gets the answer to a request about a session.
func (c *Client) session(ctx context.Context, a ask) (*cove.Session, error) {
	w, err := get[wire.Session](ctx, c, a)
	if err != nil {
		return nil, err
	}
	return c.sessionOf(w)
}

func (c *Client) sessionOf(w wire.Session) (*cove.Session, error) {
	s, err := w.Cove()
	if err != nil || s.ID == "" {
		return nil, cove.Wrap(cove.Unavailable, err, "%s answered with a session that Cove does not give", c.name).Remedy("check the URL and the version of the server")
	}
	return s, nil
}

// once is the header of a request that is done once for a key, unless that is "".
func once(key string) map[string]string {
	header := map[string]string{}
	if key != "" {
		header["Idempotency-Key"] = key
	}
	return header
}

// Open implements [cove.Sessions].
func (s sessions) Open(ctx context.Context, req cove.OpenRequest) (*cove.Session, error) {
	a := ask{method: http.MethodPost, path: path{"/api/sandboxes"}, body: wire.OpenRequestOf(req), header: once(req.IdempotencyKey)}
	if req.OnQueue == nil || req.OnFull != cove.WaitWhenFull {
		return s.c.session(ctx, a)
	}
	for f, err := range s.c.follow(ctx, a, wire.OnSession) {
		if err != nil {
			return nil, err
		}
		switch f.name {
		case wire.OnQueue:
			var place wire.QueuePlace
			if json.Unmarshal(f.data, &place) == nil {
				req.OnQueue(place.Position)
			}
		case wire.OnSession:
			w, err := parse[wire.Session](s.c, f)
			if err != nil {
				return nil, err
			}
			return s.c.sessionOf(w)
		}
	}
	return nil, nil //nolint:nilnil // follow ends with a session or an error
}

// Get implements [cove.Sessions].
func (s sessions) Get(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return s.c.session(ctx, ask{method: http.MethodGet, path: of(id, "")})
}

// List implements [cove.Sessions].
func (s sessions) List(ctx context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	query := values("project_name", f.Project, "user_id", f.User, "thread_id", f.Thread, "status", string(f.State), "node_id", f.Node, "cursor", string(f.After))
	for k, v := range f.Metadata {
		query.Add("label", k+"="+v)
	}
	return list(ctx, s.c, ask{method: http.MethodGet, path: path{"/api/sandboxes"}, query: query}, f.Limit, s.c.sessionOf)
}

// Renew implements [cove.Sessions].
func (s sessions) Renew(ctx context.Context, id cove.ID, d time.Duration) (*cove.Session, error) {
	return s.c.session(ctx, ask{method: http.MethodPost, path: of(id, "/renew"), body: wire.RenewRequestOf(d)})
}

// Stop implements [cove.Sessions].
func (s sessions) Stop(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return s.c.session(ctx, ask{method: http.MethodPost, path: of(id, "/stop")})
}

// Start implements [cove.Sessions].
func (s sessions) Start(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return s.c.session(ctx, ask{method: http.MethodPost, path: of(id, "/start")})
}

// Close implements [cove.Sessions].
func (s sessions) Close(ctx context.Context, id cove.ID, keep bool) (cove.ID, error) {
	a := ask{method: http.MethodDelete, path: of(id, "")}
	if keep {
		a.query = values("keep_workspace", "true")
	}
	w, err := get[wire.Closed](ctx, s.c, a)
	return w.SnapshotID, err
}

// Usage implements [cove.Sessions].
func (s sessions) Usage(ctx context.Context, id cove.ID) (cove.Usage, error) {
	w, err := get[wire.Usage](ctx, s.c, ask{method: http.MethodGet, path: of(id, "/stats")})
	return w.Cove(), err
}
