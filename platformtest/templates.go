package platformtest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func templateCases() []testCase {
	return []testCase{{"listed", templatesListed}, {"refused", templatesRefused}}
}

// templatesListed: what a provider has is among the templates.
func templatesListed(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	list := all(r, r.user("acme").Templates().List(r.ctx))
	for _, name := range r.capabilities().Templates {
		i := slices.IndexFunc(list, func(one cove.Template) bool { return one.Name == name })
		if i < 0 || !list[i].Ready || len(list[i].Providers) == 0 {
			t.Errorf("%s is not among %+v", name, list)
		}
	}
	if !slices.IsSortedFunc(list, func(a, b cove.Template) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("they are not in order: %+v", list)
	}
}

// templatesRefused: templates are everybody's, so that only the operator changes them,
// and names that cannot be are told apart from what is not there.
func templatesRefused(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	wantCode(t, r.user("acme").Templates().Delete(r.ctx, "base"), cove.Denied)
	p := r.admin().Templates()
	wantField(t, p.Delete(r.ctx, "A b"), cove.Invalid, "template")
	wantField(t, failure(p.Tag(r.ctx, "base", "-")), cove.Invalid, "template")
	wantField(t, failure(p.Tag(r.ctx, "-", "base")), cove.Invalid, "template")
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
			return failure(p.Templates().Build(ctx, cove.TemplateRequest{Name: "none", Files: strings.NewReader("")}))
		}},
		cove.TemplateTag: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Templates().Tag(ctx, "none", "other"))
		}},
		cove.TemplateDelete: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return p.Templates().Delete(ctx, "none")
		}},
	}
}
