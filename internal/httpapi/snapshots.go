package httpapi

import (
	"net/http"
	"reflect"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func snapshotRoutes() []route {
	const one = "/api/sandboxes/{id}"
	return []route{
		{method: http.MethodPost, pattern: one + "/pause", summary: "Freeze all that runs in a session", deed: get((*call).pause)},
		{method: http.MethodPost, pattern: one + "/resume", summary: "Let a paused session go on", deed: get((*call).resume)},
		{method: http.MethodPost, pattern: one + "/snapshot", needs: []cove.Verb{cove.SnapshotSnapshot}, summary: "Save the files of a session", deed: post(http.StatusCreated, (*call).snapshot), headers: []header{onceHeader}},
		{method: http.MethodPost, pattern: one + "/fork", needs: []cove.Verb{cove.SnapshotFork}, summary: "Open a second session with the same files", deed: deed{
			body: reflect.TypeFor[wire.ForkRequest](), answer: reflect.TypeFor[wire.Session](), status: http.StatusCreated, do: (*call).fork,
		}, headers: []header{onceHeader}, also: []other{{http.StatusOK, reflect.TypeFor[wire.Session](), "the same request made it before"}}},
		{method: http.MethodGet, pattern: "/api/snapshots", summary: "List snapshots", deed: get((*call).snapshots), query: append([]param{
			{name: "session_id", kind: word, doc: "only those of this session"},
		}, pageParams...)},
		{method: http.MethodDelete, pattern: "/api/snapshots/{snapshot}", summary: "Forget a snapshot", deed: act((*call).deleteSnapshot)},
	}
}

func (c *call) pause() (wire.Session, error) {
	return sessionAnswer(c.platform.Snapshots().Pause(c.r.Context(), c.session()))
}

func (c *call) resume() (wire.Session, error) {
	return sessionAnswer(c.platform.Snapshots().Resume(c.r.Context(), c.session()))
}

func (c *call) snapshot(w wire.SnapshotRequest) (wire.Snapshot, error) {
	s, err := c.platform.Snapshots().Snapshot(c.r.Context(), c.session(), cove.SnapshotRequest{Name: w.Name, IdempotencyKey: c.idempotencyKey()})
	if err != nil {
		return wire.Snapshot{}, err
	}
	return wire.SnapshotOf(s), nil
}

// fork answers 201 for a copy that was made, and 200 for the one that the same
// request made before.
func (c *call) fork() error {
	w, err := decode[wire.ForkRequest](c)
	if err != nil {
		return err
	}
	as := w.Cove()
	as.IdempotencyKey = c.idempotencyKey()
	s, err := c.platform.Snapshots().Fork(c.r.Context(), c.session(), as)
	if err != nil {
		return err
	}
	if s.Created {
		return c.send(http.StatusCreated, wire.SessionOf(s))
	}
	return c.send(http.StatusOK, wire.SessionOf(s))
}

func (c *call) snapshots() (wire.Page[wire.Snapshot], error) {
	limit := c.pageSize()
	f := cove.SnapshotFilter{Session: cove.ID(c.query.text("session_id")), After: cove.ID(c.query.text("cursor")), Limit: limit + 1}
	return page(c.platform.Snapshots().List(c.r.Context(), f), limit, wire.SnapshotOf, func(s *cove.Snapshot) string { return string(s.ID) })
}

func (c *call) deleteSnapshot() error {
	return c.platform.Snapshots().Delete(c.r.Context(), cove.ID(c.r.PathValue("snapshot")))
}
