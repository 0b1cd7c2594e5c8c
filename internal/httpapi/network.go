package httpapi

import (
	"net/http"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func networkRoutes() []route {
	const one = "/api/sandboxes/{id}"
	return []route{
		{method: http.MethodPut, pattern: one + "/network", needs: []cove.Verb{cove.SessionSetNetwork}, summary: "Replace what a session may reach", deed: post(http.StatusOK, (*call).setNetwork)},
		{
			method: http.MethodGet, pattern: one + "/connections", summary: "See what a session tried to reach, oldest first", deed: get((*call).connections),
			query: append([]param{{name: "after", kind: number, doc: "only those with a number above this; cursor wins"}}, pageParams...),
		},
	}
}

func (c *call) setNetwork(n cove.Network) (wire.Session, error) {
	return sessionAnswer(c.platform.Sessions().SetNetwork(c.r.Context(), c.session(), n))
}

func (c *call) connections() (wire.Page[wire.Connection], error) {
	after := c.query.number("after")
	if text := c.query.text("cursor"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return wire.Page[wire.Connection]{}, badCursor(text)
		}
		after = n
	}
	return page(c.platform.Sessions().Connections(c.r.Context(), c.session(), after), c.pageSize(), wire.ConnectionOf,
		func(last cove.Connection) string { return strconv.FormatInt(last.Number, 10) })
}
