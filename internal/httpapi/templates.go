package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func templateRoutes() []route {
	const all = "/api/templates"
	const one = all + "/{name}"
	shared := param{name: "shared", kind: flag, doc: "the template that is shared with all tenants, which needs the scope admin; left out, one of the caller's tenant"}
	return []route{
		{method: http.MethodGet, pattern: all, summary: "List what sessions can start from", deed: get((*call).listTemplates), query: pageParams},
		{
			method: http.MethodPut, pattern: one, needs: []cove.Verb{cove.TemplateBuild}, summary: "Build a template: the body is a tar with a Dockerfile and what that copies", takes: tarType, events: "stdout, stderr, built", query: []param{shared},
			deed: deed{answer: reflect.TypeFor[wire.Template](), status: http.StatusOK, do: (*call).buildTemplate},
		},
		{method: http.MethodPost, pattern: one + "/tags", needs: []cove.Verb{cove.TemplateTag}, summary: "Give what a template is now another name", deed: post(http.StatusOK, (*call).tagTemplate)},
		{method: http.MethodDelete, pattern: one, summary: "Take the name of a template away", deed: act((*call).deleteTemplate), query: []param{shared}},
	}
}

func (c *call) listTemplates() (wire.Page[wire.Template], error) {
	return pageBySkip(c, c.platform.Templates().List(c.r.Context()), wire.TemplateOf)
}

func (c *call) buildTemplate() error {
	body := c.upload()
	build := func(ctx context.Context, tell func(cove.Chunk)) (wire.Template, error) {
		t, err := c.platform.Templates().Build(ctx, cove.TemplateRequest{Name: c.r.PathValue("name"), Shared: c.query.flag("shared"), Files: body, OnOutput: tell})
		if err = body.settle(err); err != nil {
			return wire.Template{}, err
		}
		return wire.TemplateOf(*t), nil
	}
	if c.wantsEvents() {
		return c.stream(func(ctx context.Context, e *events) error {
			t, err := build(ctx, e.chunk)
			if err != nil {
				return err
			}
			return e.send(wire.OnBuilt, "", t)
		})
	}
	t, err := build(c.r.Context(), nil)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, t)
}

func (c *call) tagTemplate(w wire.TemplateTag) (wire.Template, error) {
	t, err := c.platform.Templates().Tag(c.r.Context(), c.r.PathValue("name"), w.As, w.Shared)
	if err != nil {
		return wire.Template{}, err
	}
	return wire.TemplateOf(*t), nil
}

func (c *call) deleteTemplate() error {
	return c.platform.Templates().Delete(c.r.Context(), c.r.PathValue("name"), c.query.flag("shared"))
}
