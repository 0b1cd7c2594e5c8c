package platformtest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func templateCases() []testCase {
	return []testCase{{"listed", templatesListed}, {"refused", templatesRefused}, {"scopes", templateScopes}}
}

// templatesListed: what a provider has is among the templates.
func templatesListed(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	list := all(r, r.user("acme").Templates().List(r.ctx))
	for _, name := range r.capabilities().Templates {
		i := slices.IndexFunc(list, func(one cove.Template) bool { return one.Name == name })
		if i < 0 || !list[i].Ready || !list[i].Shared || len(list[i].Providers) == 0 {
			t.Errorf("%s is not among %+v", name, list)
		}
	}
	if !slices.IsSortedFunc(list, func(a, b cove.Template) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("they are not in order: %+v", list)
	}
}

// templateScopes: ScopeTemplates changes templates of the own tenant, and ScopeAdmin is
// needed for those that are shared.
func templateScopes(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	for name, c := range map[string]struct {
		scopes      []cove.Scope
		own, shared bool // allowed
	}{
		"none":      {without(cove.ScopeTemplates, cove.ScopeAdmin), false, false},
		"templates": {[]cove.Scope{cove.ScopeTemplates}, true, false},
		"admin":     {[]cove.Scope{cove.ScopeAdmin}, true, true},
		"all":       {[]cove.Scope{cove.ScopeAll}, true, true},
	} {
		p := r.as(cove.Principal{Name: "templates-" + name, Tenant: "acme", Scopes: c.scopes}).Templates()
		for _, shared := range []bool{false, true} {
			allowed := c.own
			if shared {
				allowed = c.shared
			}
			for verb, err := range map[cove.Verb]error{
				cove.TemplateBuild:  failure(p.Build(r.ctx, cove.TemplateRequest{Name: "none", Shared: shared, Files: strings.NewReader("")})),
				cove.TemplateTag:    failure(p.Tag(r.ctx, "none", "other", shared)),
				cove.TemplateDelete: p.Delete(r.ctx, "none", shared),
			} {
				if denied := cove.CodeOf(err) == cove.Denied; err == nil || denied == allowed {
					t.Errorf("%s with scope %s, shared %v, gave %v", verb, name, shared, err)
				}
			}
		}
	}
}

// templatesRefused: shared templates are not a tenant's to change, and names that cannot
// be are told apart from what is not there.
func templatesRefused(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	wantCode(t, r.user("acme").Templates().Delete(r.ctx, "base", true), cove.Denied)
	wantField(t, failure(r.user("acme").Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Template: "bravo/zoo"}})), cove.Invalid, "template")
	p := r.admin().Templates()
	wantField(t, p.Delete(r.ctx, "A b", false), cove.Invalid, "template")
	wantField(t, p.Delete(r.ctx, "bravo/zoo", true), cove.Invalid, "template")
	wantField(t, failure(p.Tag(r.ctx, "base", "-", false)), cove.Invalid, "template")
	wantField(t, failure(p.Tag(r.ctx, "-", "base", false)), cove.Invalid, "template")
	wantField(t, failure(p.Tag(r.ctx, "bravo/zoo", "mine", false)), cove.Invalid, "template")
	wantField(t, failure(p.Build(r.ctx, cove.TemplateRequest{Name: "..", Files: strings.NewReader("")})), cove.Invalid, "template")
	wantField(t, failure(p.Build(r.ctx, cove.TemplateRequest{Name: "a"})), cove.Invalid, "files")
}

func templateCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.TemplateList: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			_, err := collect(p.Templates().List(ctx))
			return err
		}},
		cove.TemplateBuild: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Templates().Build(ctx, cove.TemplateRequest{Name: "none", Shared: true, Files: strings.NewReader("")}))
		}},
		cove.TemplateTag: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Templates().Tag(ctx, "none", "other", true))
		}},
		cove.TemplateDelete: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return p.Templates().Delete(ctx, "none", true)
		}},
	}
}
