package httpapi

import (
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func volumeRoutes() []route {
	const all, one = "/api/named-volumes", "/api/named-volumes/{volume}"
	return []route{
		{method: http.MethodPost, pattern: all, needs: []cove.Verb{cove.VolumeCreate}, summary: "Make an empty volume", deed: post(http.StatusCreated, (*call).createVolume), headers: []header{onceHeader}},
		{method: http.MethodGet, pattern: all, summary: "List volumes", deed: get((*call).namedVolumes), query: pageParams},
		{method: http.MethodGet, pattern: one, summary: "Describe a volume, by its id or its name", deed: get((*call).namedVolume)},
		{method: http.MethodDelete, pattern: one, summary: "Remove a volume that no session has, with all that is in it", deed: act((*call).deleteVolume)},
	}
}

func (c *call) createVolume(w wire.VolumeRequest) (wire.SavedVolume, error) {
	return volumeAnswer(c.platform.Volumes().Create(c.r.Context(), cove.VolumeRequest{Name: w.Name, IdempotencyKey: c.idempotencyKey()}))
}

func (c *call) namedVolume() (wire.SavedVolume, error) {
	return volumeAnswer(c.platform.Volumes().Get(c.r.Context(), c.r.PathValue("volume")))
}

func volumeAnswer(v *cove.SavedVolume, err error) (wire.SavedVolume, error) {
	if err != nil {
		return wire.SavedVolume{}, err
	}
	return wire.SavedVolumeOf(v), nil
}

func (c *call) namedVolumes() (wire.Page[wire.SavedVolume], error) {
	limit := c.pageSize()
	f := cove.VolumeFilter{After: cove.ID(c.query.text("cursor")), Limit: limit + 1}
	return page(c.platform.Volumes().List(c.r.Context(), f), limit, wire.SavedVolumeOf, func(v *cove.SavedVolume) string { return string(v.ID) })
}

func (c *call) deleteVolume() error {
	return c.platform.Volumes().Delete(c.r.Context(), c.r.PathValue("volume"))
}
