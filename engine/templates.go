package engine

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// templates is the part of the platform that keeps what sessions are made from.
type templates struct{ v view }

func (t templates) does(verb cove.Verb) action { return action{Action: cove.Action{Verb: verb}} }

// List implements [cove.Templates].
func (t templates) List(ctx context.Context) iter.Seq2[cove.Template, error] {
	return actSeq(ctx, t.v, t.does(cove.TemplateList), func(ctx context.Context, _ *step) (iter.Seq2[cove.Template, error], error) {
		all, err := t.v.e.allTemplates(ctx)
		return each(all), err
	})
}

// allTemplates are those that are kept here and those that providers have, by name.
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
	slices.SortStableFunc(all, func(a, b cove.Template) int { return strings.Compare(a.Name, b.Name) })
	return all, ctx.Err()
}

// Build implements [cove.Templates].
func (t templates) Build(ctx context.Context, req cove.TemplateRequest) (*cove.Template, error) {
	return changed(ctx, t, cove.TemplateBuild, req.Validate, func(ctx context.Context, m cove.TemplateMaker) (*cove.Template, error) {
		if err := t.v.e.roomOnDisk(); err != nil {
			return nil, err
		}
		return m.BuildTemplate(ctx, req)
	})
}

// Tag implements [cove.Templates].
func (t templates) Tag(ctx context.Context, name, as string) (*cove.Template, error) {
	valid := func() error {
		if err := cove.ValidTemplateName(name); err != nil {
			return err
		}
		return cove.ValidTemplateName(as)
	}
	return changed(ctx, t, cove.TemplateTag, valid, func(ctx context.Context, m cove.TemplateMaker) (*cove.Template, error) {
		return m.TagTemplate(ctx, name, as)
	})
}

// Delete implements [cove.Templates].
func (t templates) Delete(ctx context.Context, name string) error {
	valid := func() error { return cove.ValidTemplateName(name) }
	_, err := changed(ctx, t, cove.TemplateDelete, valid, func(ctx context.Context, m cove.TemplateMaker) (struct{}, error) {
		return struct{}{}, m.RemoveTemplate(ctx, name)
	})
	return err
}

// changed changes templates. What providers said they have does not hold any more.
func changed[T any](ctx context.Context, t templates, verb cove.Verb, valid func() error, do func(context.Context, cove.TemplateMaker) (T, error)) (T, error) {
	return act(ctx, t.v, t.does(verb), func(ctx context.Context, _ *step) (none T, err error) {
		if err := valid(); err != nil {
			return none, err
		}
		e := t.v.e
		if e.cfg.Templates == nil {
			return none, cove.Errorf(cove.Unsupported, "templates cannot be changed here").Remedy("ask a server that cove serve started")
		}
		defer e.probes.forget()
		return do(ctx, e.cfg.Templates)
	})
}
