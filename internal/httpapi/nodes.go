package httpapi

import (
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func nodeRoutes() []route {
	const all, one = "/api/nodes", "/api/nodes/{node}"
	return []route{
		{method: http.MethodGet, pattern: all, summary: "List the servers of the cluster", deed: get((*call).nodes)},
		{method: http.MethodPost, pattern: one + "/drain", summary: "Have a node take no new sessions and give away those that can move", deed: get((*call).drainNode)},
		{method: http.MethodPost, pattern: one + "/uncordon", summary: "Let a node take new sessions again", deed: get((*call).uncordonNode)},
	}
}

func (c *call) nodes() (wire.Page[wire.Node], error) {
	list, err := c.platform.Nodes().List(c.r.Context())
	items := make([]wire.Node, len(list))
	for i, n := range list {
		items[i] = wire.NodeOf(n)
	}
	return wire.Page[wire.Node]{Items: items}, err
}

func (c *call) drainNode() (wire.Node, error) {
	return nodeAnswer(c.platform.Nodes().Drain(c.r.Context(), c.r.PathValue("node")))
}

func (c *call) uncordonNode() (wire.Node, error) {
	return nodeAnswer(c.platform.Nodes().Uncordon(c.r.Context(), c.r.PathValue("node")))
}

func nodeAnswer(n *cove.Node, err error) (wire.Node, error) {
	if err != nil {
		return wire.Node{}, err
	}
	return wire.NodeOf(*n), nil
}
