package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

type admin struct{ c *Client }

// CreateKey implements [cove.Admin]. The key has no Hash.
func (a admin) CreateKey(ctx context.Context, req cove.KeyRequest) (*cove.Key, string, error) {
	w, err := get[wire.NewKey](ctx, a.c, ask{method: http.MethodPost, path: path{"/api/keys"}, body: wire.KeyRequestOf(req), header: once(req.IdempotencyKey)})
	if err != nil {
		return nil, "", err
	}
	key, err := a.keyOf(w.Key)
	return key, w.Secret, err
}

func (a admin) keyOf(w wire.Key) (*cove.Key, error) {
	key, err := w.Cove()
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "%s answered with a key that Cove does not give", a.c.name).Remedy("check the URL and the version of the server")
	}
	return key, nil
}

// Keys implements [cove.Admin]. The keys have no Hash.
func (a admin) Keys(ctx context.Context) iter.Seq2[*cove.Key, error] {
	return list(ctx, a.c, ask{method: http.MethodGet, path: path{"/api/keys"}}, 0, a.keyOf)
}

// RevokeKey implements [cove.Admin].
func (a admin) RevokeKey(ctx context.Context, id cove.ID) error {
	return a.c.tell(ctx, ask{method: http.MethodDelete, path: path{"/api/keys/", string(id)}})
}

func tenantPath(name string) (path, error) {
	if name == "" {
		return nil, cove.ValidTenant(name)
	}
	return path{"/api/tenants/", name}, nil
}

// Tenant implements [cove.Admin].
func (a admin) Tenant(ctx context.Context, name string) (*cove.TenantReport, error) {
	at, err := tenantPath(name)
	if err != nil {
		return nil, err
	}
	w, err := get[wire.Tenant](ctx, a.c, ask{method: http.MethodGet, path: at})
	if err != nil {
		return nil, err
	}
	return w.Cove(), nil
}

// SetTenant implements [cove.Admin].
func (a admin) SetTenant(ctx context.Context, t cove.Tenant) error {
	at, err := tenantPath(t.Name)
	if err != nil {
		return err
	}
	return a.c.tell(ctx, ask{method: http.MethodPut, path: at, body: wire.TenantRequestOf(t)})
}

// Stats implements [cove.Admin].
func (a admin) Stats(ctx context.Context) (*cove.Stats, error) {
	w, err := get[wire.Stats](ctx, a.c, ask{method: http.MethodGet, path: path{"/api/stats"}})
	if err != nil {
		return nil, err
	}
	return w.Cove(), nil
}

// Tasks implements [cove.Admin]. They come ordered by name.
func (a admin) Tasks(ctx context.Context) ([]cove.TaskStatus, error) {
	return a.maintenance(ctx, ask{method: http.MethodGet, path: path{"/api/maintenance"}})
}

func (a admin) maintenance(ctx context.Context, what ask) ([]cove.TaskStatus, error) {
	w, err := get[wire.Maintenance](ctx, a.c, what)
	if err != nil {
		return nil, err
	}
	return w.Cove(), nil
}

// taskWords are the routes of what can be done to a task.
var taskWords = map[cove.TaskVerb]string{
	cove.PauseTask: "pause", cove.ResumeTask: "resume", cove.RunTask: "cleanup", cove.RestartTask: "restart",
}

// ControlTask implements [cove.Admin]. The tasks come ordered by name.
func (a admin) ControlTask(ctx context.Context, name string, do cove.TaskVerb) ([]cove.TaskStatus, error) {
	word, ok := taskWords[do]
	if !ok {
		return nil, cove.InvalidField("do", "%.40q is unknown; use pause, resume, run or restart", string(do))
	}
	return a.maintenance(ctx, ask{method: http.MethodPost, path: path{"/api/maintenance/", word}, query: values("task", name)})
}

// Events implements [cove.Admin].
func (a admin) Events(ctx context.Context, f cove.EventFilter) iter.Seq2[cove.Event, error] {
	what := ask{
		method: http.MethodGet, path: path{"/api/events"},
		query: values("tenant", f.Tenant, "session_id", string(f.Session), "kind", f.Kind),
	}
	if f.After != 0 {
		what.query.Set("cursor", strconv.FormatInt(f.After, 10))
	}
	if f.Tail != 0 {
		what.query.Set("tail", strconv.Itoa(f.Tail))
	}
	if !f.Follow {
		return list(ctx, a.c, what, f.Limit, plain(wire.Event.Cove))
	}
	what.query.Set("follow", "true")
	return atMost(f.Limit, feed(ctx, a.c, what, wire.OnEvent, wire.Event.Cove))
}

// atMost yields n elements of a list, or all where n is 0.
func atMost[T any](n int, list iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		left := n
		for elem, err := range list {
			if !yield(elem, err) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// Doctor implements [cove.Admin].
func (a admin) Doctor(ctx context.Context) ([]cove.ProviderReport, error) {
	w, err := get[wire.Page[cove.ProviderReport]](ctx, a.c, ask{method: http.MethodGet, path: path{"/api/doctor"}})
	return w.Items, err
}
