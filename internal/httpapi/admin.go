package httpapi

import (
	"context"
	"math"
	"net/http"
	"reflect"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func adminRoutes() []route {
	return []route{
		{method: http.MethodGet, pattern: "/api/keys", summary: "List keys", deed: get((*call).keys), query: pageParams},
		{method: http.MethodPost, pattern: "/api/keys", needs: []cove.Verb{cove.AdminCreateKey}, summary: "Make a key; its secret is shown this once", deed: post(http.StatusCreated, (*call).createKey), headers: []header{onceHeader}},
		{method: http.MethodDelete, pattern: "/api/keys/{key}", summary: "Revoke a key", deed: act((*call).revokeKey)},
		{method: http.MethodGet, pattern: "/api/tenants/{tenant}", summary: "Get a tenant, its bounds and what it uses", deed: get((*call).tenant)},
		{method: http.MethodPut, pattern: "/api/tenants/{tenant}", needs: []cove.Verb{cove.AdminSetTenant}, summary: "Set the bounds of a tenant", deed: actOn((*call).setTenant)},
		{method: http.MethodGet, pattern: "/api/stats", summary: "See the state of the platform in numbers", deed: get((*call).stats)},
		{method: http.MethodGet, pattern: "/api/volumes", summary: "List the paths of the host that can be mounted", deed: get((*call).volumes)},
		{method: http.MethodGet, pattern: "/api/doctor", summary: "See what each provider can do and enforce here", deed: get((*call).doctor)},
		{method: http.MethodGet, pattern: "/api/events/verify", summary: "Check that no line of the journal was changed, lost or moved", deed: get((*call).checkJournal)},
		{
			method: http.MethodGet, pattern: "/api/events", summary: "Read the journal", events: "event, end",
			deed: deed{answer: reflect.TypeFor[wire.Page[wire.Event]](), status: http.StatusOK, do: (*call).journal},
			query: append([]param{
				{name: "follow", kind: flag, doc: "go on with new lines, as an event stream"},
				{name: "tenant", kind: word, doc: "only those of this tenant"},
				{name: "session_id", kind: word, doc: "only those of this session"},
				{name: "tail", kind: number, from: 1, to: math.MaxInt32, doc: "only among so many lines at the end, where neither cursor nor Last-Event-ID says where to go on"},
				{name: "kind", kind: word, doc: "only those of this kind, or of all that begin so where it ends in a dot"},
			}, pageParams...),
			headers: []header{lastHeader},
		},
	}
}

// checkJournal is for those who may read all of the journal.
func (c *call) checkJournal() (wire.JournalCheck, error) {
	if _, err := c.platform.Admin().Tasks(c.r.Context()); err != nil {
		return wire.JournalCheck{}, err
	}
	if c.api.Journal == nil {
		return wire.JournalCheck{}, cove.Errorf(cove.Unsupported, "this server cannot check its journal").Remedy("run cove audit verify on its machine")
	}
	return c.api.Journal(c.r.Context())
}

func (c *call) keys() (wire.Page[wire.Key], error) {
	return pageBySkip(c, c.platform.Admin().Keys(c.r.Context()), wire.KeyOf)
}

func (c *call) createKey(w wire.KeyRequest) (wire.NewKey, error) {
	req, err := w.Cove()
	if err != nil {
		return wire.NewKey{}, err
	}
	req.IdempotencyKey = c.idempotencyKey()
	key, secret, err := c.platform.Admin().CreateKey(c.r.Context(), req)
	if err != nil {
		return wire.NewKey{}, err
	}
	return wire.NewKey{Key: wire.KeyOf(key), Secret: secret}, nil
}

func (c *call) revokeKey() error {
	return c.platform.Admin().RevokeKey(c.r.Context(), cove.ID(c.r.PathValue("key")))
}

func (c *call) tenant() (wire.Tenant, error) {
	t, err := c.platform.Admin().Tenant(c.r.Context(), c.r.PathValue("tenant"))
	if err != nil {
		return wire.Tenant{}, err
	}
	return wire.TenantOf(t), nil
}

func (c *call) setTenant(w wire.TenantRequest) error {
	return c.platform.Admin().SetTenant(c.r.Context(), w.Cove(c.r.PathValue("tenant")))
}

func (c *call) stats() (wire.Stats, error) {
	s, err := c.platform.Admin().Stats(c.r.Context())
	if err != nil {
		return wire.Stats{}, err
	}
	return wire.StatsOf(s), nil
}

func (c *call) volumes() (wire.Page[cove.Volume], error) {
	s, err := c.platform.Admin().Stats(c.r.Context())
	if err != nil {
		return wire.Page[cove.Volume]{}, err
	}
	return wire.Page[cove.Volume]{Items: append([]cove.Volume{}, s.Volumes...)}, nil
}

func (c *call) doctor() (wire.Page[cove.ProviderReport], error) {
	reports, err := c.platform.Admin().Doctor(c.r.Context())
	return wire.Page[cove.ProviderReport]{Items: append([]cove.ProviderReport{}, reports...)}, err
}

// journal answers with a page of events, or follows them from there on. A
// client that lost the stream goes on after its Last-Event-ID.
func (c *call) journal() error {
	f := cove.EventFilter{Tenant: c.query.text("tenant"), Session: cove.ID(c.query.text("session_id")), Kind: c.query.text("kind"), Tail: int(c.query.number("tail"))}
	cursor := c.query.text("cursor")
	if last := c.r.Header.Get(lastHeader.name); last != "" {
		cursor = last
	}
	if cursor != "" {
		var err error
		if f.After, err = strconv.ParseInt(cursor, 10, 64); err != nil {
			return badCursor(cursor)
		}
	}
	if !c.query.flag("follow") && !c.wantsEvents() {
		return c.journalPage(f)
	}
	f.Follow, f.Limit = c.query.flag("follow"), int(c.query.number("limit"))
	return c.stream(func(ctx context.Context, e *events) error {
		for event, err := range c.platform.Admin().Events(ctx, f) {
			if err != nil {
				return err
			}
			if err := e.send(wire.OnEvent, strconv.FormatInt(event.Seq, 10), wire.EventOf(event)); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return e.send(wire.OnEnd, "", struct{}{})
	})
}

func (c *call) journalPage(f cove.EventFilter) error {
	limit := c.pageSize()
	f.Limit = limit + 1
	p, err := page(c.platform.Admin().Events(c.r.Context(), f), limit, wire.EventOf, func(e cove.Event) string { return strconv.FormatInt(e.Seq, 10) })
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, p)
}
