package e2bapi

import (
	"net/http"
	"path"
	"strings"

	"github.com/cove-sandbox/cove"
)

// volumeRoutes are the routes of the control API about volumes.
func volumeRoutes() map[string]action {
	return map[string]action{
		"GET /volumes":         (*call).listVolumes,
		"POST /volumes":        (*call).createVolume,
		"GET /volumes/{id}":    (*call).volume,
		"DELETE /volumes/{id}": (*call).destroyVolume,
	}
}

// volumeAnswer is a volume. The token and the domain are for its files.
type volumeAnswer struct {
	Volume string `json:"volumeID"`
	Name   string `json:"name"`
	Token  string `json:"token,omitempty"`
	Domain string `json:"domain,omitempty"`
}

// volumeOf describes a volume to a caller that may use it.
func (c *call) volumeOf(v *cove.SavedVolume) volumeAnswer {
	return volumeAnswer{Volume: string(v.ID), Name: v.Name, Token: Token(c.h.cfg.Secret, kindVolume, v.ID, c.who.Name), Domain: c.h.cfg.Domain}
}

// listVolumes tells about the caller's volumes, all on one page.
func (c *call) listVolumes() error {
	out := []volumeAnswer{}
	for v, err := range c.platform.Volumes().List(c.r.Context(), cove.VolumeFilter{Limit: maxListed}) {
		if err != nil {
			return err
		}
		out = append(out, volumeAnswer{Volume: string(v.ID), Name: v.Name})
	}
	c.answer(http.StatusOK, out)
	return nil
}

func (c *call) createVolume() error {
	var b struct {
		Name string `json:"name"`
	}
	if err := c.body(&b); err != nil {
		return err
	}
	v, err := c.platform.Volumes().Create(c.r.Context(), cove.VolumeRequest{Name: b.Name, IdempotencyKey: c.r.Header.Get("Idempotency-Key")})
	if err != nil {
		return err
	}
	c.answer(http.StatusCreated, c.volumeOf(v))
	return nil
}

// namedVolume is the volume that a path names.
func (c *call) namedVolume() (*cove.SavedVolume, error) {
	ref := c.r.PathValue("id")
	if !cove.ID(ref).Valid() {
		return nil, cove.Errorf(cove.NotFound, "there is no volume %q", clip(ref))
	}
	return c.platform.Volumes().Get(c.r.Context(), ref)
}

func (c *call) volume() error {
	v, err := c.namedVolume()
	if err != nil {
		return err
	}
	c.answer(http.StatusOK, c.volumeOf(v))
	return nil
}

// destroyVolume removes a volume. The sessions through which its files are reached are
// ours, and must not keep it.
func (c *call) destroyVolume() error {
	v, err := c.namedVolume()
	if err != nil {
		return err
	}
	ctx := c.r.Context()
	for s, err := range c.platform.Sessions().List(ctx, cove.SessionFilter{User: volumeUser, Limit: maxListed}) {
		if err != nil {
			return err
		}
		if strings.TrimSuffix(s.Spec.Thread, volumeRead) != string(v.ID) {
			continue
		}
		if _, err := c.platform.Sessions().Close(ctx, s.ID, false); err != nil && cove.CodeOf(err) != cove.NotFound {
			return err
		}
	}
	if err := c.platform.Volumes().Delete(ctx, string(v.ID)); err != nil {
		return err
	}
	c.done()
	return nil
}

// volumeMount is where a sandbox has a volume.
type volumeMount struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// mountsOf are the named volumes of a sandbox.
func mountsOf(s cove.Spec) []volumeMount {
	out := []volumeMount{}
	for _, v := range s.Volumes {
		if v.Name != "" {
			out = append(out, volumeMount{v.Name, v.Target})
		}
	}
	return out
}

// volumesOf translates mounts. There, everybody may write.
func volumesOf(mounts []volumeMount) []cove.Volume {
	var out []cove.Volume
	for _, m := range mounts {
		target := m.Path
		if path.IsAbs(target) {
			target = path.Clean(target) // a slash at the end means nothing
		}
		out = append(out, cove.Volume{Name: m.Name, Target: target, Write: true})
	}
	return out
}
