package httpapi

import (
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func datasetRoutes() []route {
	return []route{
		{method: http.MethodGet, pattern: "/api/datasets", summary: "List the datasets that the key may ask, by id", deed: get((*call).listDatasets), query: pageParams},
		{method: http.MethodGet, pattern: "/api/datasets/{dataset}/schema", summary: "Look into a dataset: columns, rows and a sample of each table", deed: get((*call).datasetSchema)},
	}
}

func (c *call) listDatasets() (wire.Page[wire.Dataset], error) {
	limit := c.pageSize()
	list := c.platform.Datasets().List(c.r.Context(), cove.DatasetFilter{After: c.query.text("cursor"), Limit: limit + 1})
	return page(list, limit, wire.DatasetOf, func(d *cove.Dataset) string { return d.ID })
}

func (c *call) datasetSchema() (wire.Dataset, error) {
	d, err := c.platform.Datasets().Schema(c.r.Context(), c.r.PathValue("dataset"))
	if err != nil {
		return wire.Dataset{}, err
	}
	return wire.DatasetOf(d), nil
}
