package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// templates is the part of the platform that keeps what sessions are made from.
type templates struct{ v view }

// List implements [cove.Templates].
func (t templates) List(ctx context.Context) iter.Seq2[cove.Template, error] {
	return actSeq(ctx, t.v, action{Action: cove.Action{Verb: cove.TemplateList}}, func(ctx context.Context, _ *step) (iter.Seq2[cove.Template, error], error) {
		all, err := t.v.e.templatesOf(ctx, t.v.p.Tenant)
		return each(all), err
	})
}

// templateFor returns the full name of the template that a tenant's caller names.
func (e *Engine) templateFor(tenant, name string) (string, error) {
	if strings.Contains(name, "/") {
		return "", cove.InvalidField("template", "%.80q is not the name of a template, which has no slash; GET /api/templates lists those that there are", name)
	}
	if e.cfg.Templates == nil || cove.ValidTemplateName(name) != nil {
		return name, nil //nolint:nilerr // it is no template's name; the provider says so
	}
	own := cove.TenantTemplate(tenant, name)
	has, err := e.cfg.Templates.HasTemplate(own)
	if err != nil || !has {
		return name, err
	}
	return own, nil
}

// templatesOf are the templates of a tenant and the shared ones, by name. Of two with
// one name it is the tenant's.
func (e *Engine) templatesOf(ctx context.Context, tenant string) (visible []cove.Template, err error) {
	all, err := e.allTemplates(ctx)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for _, one := range all {
		of, name := cove.SplitTemplate(one.Name)
		if of != "" && of != tenant {
			continue
		}
		one.Name, one.Shared = name, of == ""
		if i, twice := at[name]; !twice {
			at[name], visible = len(visible), append(visible, one)
		} else if !one.Shared {
			visible[i] = one
		}
	}
	slices.SortFunc(visible, func(a, b cove.Template) int { return strings.Compare(a.Name, b.Name) })
	return visible, nil
}

// allTemplates are those that are kept here and those that providers have, by their
// full names.
func (e *Engine) allTemplates(ctx context.Context) (all []cove.Template, err error) {
	if e.cfg.Templates != nil {
		if all, err = e.cfg.Templates.Templates(ctx); err != nil {
			return nil, err
		}
	}
	for _, report := range ladder(ctx, e.cfg.Providers, e.cfg.Provider, e.cfg.Fallback, e.probes.of) {
		for _, name := range report.Capabilities.Templates {
			i := slices.IndexFunc(all, func(t cove.Template) bool { return t.Name == name })
			if i < 0 {
				i, all = len(all), append(all, cove.Template{Name: name})
			}
			one := &all[i]
			one.Providers = append(one.Providers, report.Name)
			one.Ready, one.Why, one.Remedy = true, "", "" // for that one, whatever this machine has
		}
	}
	return all, ctx.Err()
}

// Build implements [cove.Templates].
func (t templates) Build(ctx context.Context, req cove.TemplateRequest) (*cove.Template, error) {
	c := templateChange{cove.TemplateBuild, req.Name, req.Shared}
	return changed(ctx, t, c, req.Validate, func(ctx context.Context, m cove.TemplateMaker, full string) (*cove.Template, error) {
		if err := t.v.e.RoomOnDisk(); err != nil {
			return nil, err
		}
		req.Name = full
		return c.made(m.BuildTemplate(ctx, req))
	})
}

// Tag implements [cove.Templates].
func (t templates) Tag(ctx context.Context, name, as string, shared bool) (*cove.Template, error) {
	c := templateChange{cove.TemplateTag, as, shared}
	valid := func() error { return cmp.Or(cove.ValidTemplateName(name), cove.ValidTemplateName(as)) }
	return changed(ctx, t, c, valid, func(ctx context.Context, m cove.TemplateMaker, full string) (*cove.Template, error) {
		from := name
		if !shared { // what is shared comes from what is shared
			var err error
			if from, err = t.v.e.templateFor(t.v.p.Tenant, name); err != nil {
				return nil, err
			}
		}
		return c.made(m.TagTemplate(ctx, from, full))
	})
}

// Delete implements [cove.Templates].
func (t templates) Delete(ctx context.Context, name string, shared bool) error {
	c := templateChange{cove.TemplateDelete, name, shared}
	valid := func() error { return cove.ValidTemplateName(name) }
	_, err := changed(ctx, t, c, valid, func(ctx context.Context, m cove.TemplateMaker, full string) (struct{}, error) {
		if has, err := m.HasTemplate(full); err != nil || !has {
			return struct{}{}, cmp.Or(err, error(cove.Errorf(cove.NotFound, "there is no template %s", name).Remedy("GET /api/templates lists those that are there")))
		}
		return struct{}{}, m.RemoveTemplate(ctx, full)
	})
	return err
}

// templateChange is what happens to which template.
type templateChange struct {
	verb   cove.Verb
	name   string
	shared bool
}

// content is what the journal keeps of a change.
func (c templateChange) content() json.RawMessage {
	data, _ := json.Marshal(map[string]any{"template": short(c.name), "shared": c.shared}) // a map of plain values cannot fail
	return data
}

// made is the answer about a template that was made.
func (c templateChange) made(t *cove.Template, err error) (*cove.Template, error) {
	if err != nil {
		return nil, err
	}
	made := *t
	made.Name, made.Shared = c.name, c.shared
	return &made, nil
}

// changed changes a template. What providers said they have does not hold any more.
func changed[T any](ctx context.Context, t templates, c templateChange, valid func() error, do func(ctx context.Context, m cove.TemplateMaker, full string) (T, error)) (T, error) {
	a := action{Action: cove.Action{Verb: c.verb}, data: c.content()}
	if !c.shared {
		a.Tenant = t.v.p.Tenant
	}
	return act(ctx, t.v, a, func(ctx context.Context, _ *step) (none T, err error) {
		if err := valid(); err != nil {
			return none, err
		}
		e := t.v.e
		if e.cfg.Templates == nil {
			return none, cove.Errorf(cove.Unsupported, "templates cannot be changed here").Remedy("ask a server that cove serve started")
		}
		full := c.name
		if !c.shared {
			if full, err = e.ownTemplate(ctx, t.v.p.Tenant, c.name); err != nil {
				return none, err
			}
		}
		defer e.probes.forget()
		return do(ctx, e.cfg.Templates, full)
	})
}

// ownTemplate returns the full name of a template that a tenant has or may make. A name
// that is shared already is refused: the two would be taken for each other.
func (e *Engine) ownTemplate(ctx context.Context, tenant, name string) (string, error) {
	own := cove.TenantTemplate(tenant, name)
	if has, err := e.cfg.Templates.HasTemplate(own); err != nil || has {
		return own, err
	}
	all, err := e.allTemplates(ctx)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(all, func(one cove.Template) bool { return one.Name == name }) {
		return "", cove.Errorf(cove.Conflict, "template %s is shared with all tenants", name).With("field", "template").
			Remedy("use another name for a template of this tenant; to change the shared one, set shared, which needs the scope %s", cove.ScopeAdmin)
	}
	return own, nil
}
