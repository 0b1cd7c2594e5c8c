package engine_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// rack keeps templates in memory.
type rack struct{ names map[string]string }

func (s *rack) Templates(context.Context) ([]cove.Template, error) {
	var all []cove.Template
	for name, digest := range s.names {
		all = append(all, cove.Template{Name: name, Digest: digest, Why: "nobody has it", Remedy: "wait"})
	}
	return all, nil
}

func (s *rack) HasTemplate(name string) (bool, error) {
	_, ok := s.names[name]
	return ok, nil
}

func (s *rack) BuildTemplate(_ context.Context, req cove.TemplateRequest) (*cove.Template, error) {
	data, err := io.ReadAll(req.Files)
	s.names[req.Name] = string(data)
	return &cove.Template{Name: req.Name, Digest: string(data)}, err
}

func (s *rack) TagTemplate(_ context.Context, name, as string) (*cove.Template, error) {
	if _, ok := s.names[name]; !ok {
		return nil, cove.Errorf(cove.NotFound, "there is no template %s", name)
	}
	s.names[as] = s.names[name]
	return &cove.Template{Name: as, Digest: s.names[as]}, nil
}

func (s *rack) RemoveTemplate(_ context.Context, name string) error {
	if _, ok := s.names[name]; !ok {
		return cove.Errorf(cove.NotFound, "there is no template %s", name)
	}
	delete(s.names, name)
	return nil
}

func TestTemplates(t *testing.T) {
	kept := &rack{names: map[string]string{}}
	e := openEngine(t, func(c *engine.Config) { c.Templates = kept })
	p := e.As(boss).Templates()
	if made, err := p.Build(t.Context(), cove.TemplateRequest{Name: "zoo", Files: strings.NewReader("one")}); err != nil || made.Digest != "one" {
		t.Fatalf("built %+v, %v", made, err)
	}
	if made, err := p.Tag(t.Context(), "zoo", "zoo.v1", false); err != nil || made.Digest != "one" {
		t.Fatalf("tagged %+v, %v", made, err)
	}
	var names []string
	for one, err := range p.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, one.Name)
		if (len(one.Providers) > 0) != one.Ready || one.Ready == (one.Why != "") {
			t.Errorf("%+v is said to be ready, or not, for no reason", one)
		}
	}
	if diff := cmp.Diff([]string{"zoo", "zoo.v1"}, names[len(names)-2:]); diff != "" {
		t.Errorf("the last of %v (-want +got):\n%s", names, diff)
	}
	if err := p.Delete(t.Context(), "zoo.v1", false); err != nil {
		t.Error(err)
	}
	if err := p.Delete(t.Context(), "zoo.v1", false); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("what is not there was removed: %v", err)
	}
	user := boss
	user.Scopes = []cove.Scope{cove.ScopeRead, cove.ScopeWrite, cove.ScopeExec}
	if err := e.As(user).Templates().Delete(t.Context(), "zoo", false); cove.CodeOf(err) != cove.Denied {
		t.Errorf("a key without the scope deleted a template: %v", err)
	}
	if err := openEngine(t).As(boss).Templates().Delete(t.Context(), "zoo", false); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("without templates to keep it gave %v", err)
	}
}

// builder is a caller of a tenant that may use sessions, and build templates of its own.
func builder(tenant string, more ...cove.Scope) cove.Principal {
	scopes := []cove.Scope{cove.ScopeRead, cove.ScopeWrite, cove.ScopeExec, cove.ScopeTemplates}
	return cove.Principal{Name: "builder-" + tenant, Tenant: tenant, Scopes: append(scopes, more...)}
}

// twoTenants is a world whose provider has templates of two tenants, a shared one and
// more, and what keeps them.
func twoTenants(t *testing.T, more ...string) (*world, *rack) {
	t.Helper()
	w := newWorld(t, func(c *fake.Config) {
		c.Templates = append([]string{"base", "kit", "acme/zoo", "bravo/zoo", "acme/only"}, more...)
	})
	return w, &rack{names: map[string]string{"kit": "shared"}}
}

func (s *rack) build(t *testing.T, p cove.Platform, name, content string) {
	t.Helper()
	made, err := p.Templates().Build(t.Context(), cove.TemplateRequest{Name: name, Files: strings.NewReader(content)})
	if err != nil || made.Name != name || made.Shared {
		t.Fatalf("built %+v, %v", made, err)
	}
}

// TestTemplatesOfTenants: two tenants have templates of one name, and neither sees, runs,
// rebuilds, tags or deletes that of the other.
func TestTemplatesOfTenants(t *testing.T) {
	w, kept := twoTenants(t)
	e := w.open(func(c *engine.Config) { c.Templates = kept })
	acme, bravo := e.As(builder("acme")), e.As(builder("bravo"))
	kept.build(t, acme, "zoo", "of acme")
	kept.build(t, acme, "only", "of acme, too")
	runs := mustOpen(t, acme, cove.Spec{Template: "zoo", Thread: "1"})
	if runs.Spec.Template != "zoo" {
		t.Errorf("the session is said to have template %q", runs.Spec.Template)
	}

	if _, err := bravo.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Template: "only"}}); cove.CodeOf(err) != cove.Invalid || strings.Contains(err.Error(), "acme") || strings.Contains(cove.MessageOf(err), "zoo") {
		t.Errorf("a template of another tenant: %v", err)
	}
	for name, err := range map[string]error{
		"delete":          bravo.Templates().Delete(t.Context(), "zoo", false),
		"tag":             failed(bravo.Templates().Tag(t.Context(), "zoo", "mine", false)),
		"tag by its name": failed(bravo.Templates().Tag(t.Context(), "only", "mine", false)),
	} {
		if cove.CodeOf(err) != cove.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	kept.build(t, bravo, "zoo", "of bravo") // the attack: it is another template
	if err := bravo.Templates().Delete(t.Context(), "zoo", false); err != nil {
		t.Error(err)
	}
	kept.build(t, bravo, "zoo", "of bravo")
	want := map[string]string{"kit": "shared", "acme/zoo": "of acme", "acme/only": "of acme, too", "bravo/zoo": "of bravo"}
	if diff := cmp.Diff(want, kept.names); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
	if again := mustOpen(t, acme, cove.Spec{Template: "zoo", Thread: "1"}); again.ID != runs.ID {
		t.Error("the session with the template is another now")
	}
	for tenant, want := range map[string][]string{"acme": {"base", "kit", "only", "zoo"}, "bravo": {"base", "kit", "zoo"}, "ops": {"base", "kit"}} {
		p := e.As(builder(tenant, cove.ScopeAdmin))
		var names []string
		for one, err := range p.Templates().List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, one.Name)
			if one.Shared != (one.Name == "base" || one.Name == "kit") {
				t.Errorf("%s sees %+v", tenant, one)
			}
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s sees (-want +got):\n%s", tenant, diff)
		}
		reports, err := p.Admin().Doctor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range reports[0].Capabilities.Templates {
			if strings.Contains(name, "/") || !slices.Contains(want, name) {
				t.Errorf("the doctor tells %s of %s", tenant, name)
			}
		}
	}
}

// failed is the error of two results.
func failed[T any](_ T, err error) error { return err }

// TestSharedTemplates: only a caller with the scope admin that says shared changes what
// all tenants have, and no tenant takes such a name.
func TestSharedTemplates(t *testing.T) {
	w, kept := twoTenants(t)
	e := w.open(func(c *engine.Config) { c.Templates = kept })
	admin := builder("acme", cove.ScopeAdmin)
	for name, p := range map[string]cove.Platform{"builder": e.As(builder("acme")), "admin": e.As(admin)} {
		for what, err := range map[string]error{
			"build":              failed(p.Templates().Build(t.Context(), cove.TemplateRequest{Name: "kit", Files: strings.NewReader("evil")})),
			"build a provider's": failed(p.Templates().Build(t.Context(), cove.TemplateRequest{Name: "base", Files: strings.NewReader("evil")})),
			"tag":                failed(p.Templates().Tag(t.Context(), "kit", "kit", false)),
			"delete":             p.Templates().Delete(t.Context(), "kit", false),
		} {
			if cove.CodeOf(err) != cove.Conflict || !strings.Contains(cove.RemedyOf(err), "shared") {
				t.Errorf("%s of %s without shared: %v", what, name, err)
			}
		}
	}
	p := e.As(builder("acme")).Templates()
	if made, err := p.Tag(t.Context(), "kit", "only", false); err != nil || made.Name != "only" || made.Shared {
		t.Errorf("tagging a shared template as an own one gave %+v, %v", made, err)
	}
	for what, err := range map[string]error{
		"build":  failed(p.Build(t.Context(), cove.TemplateRequest{Name: "kit", Shared: true, Files: strings.NewReader("evil")})),
		"tag":    failed(p.Tag(t.Context(), "only", "kit", true)),
		"delete": p.Delete(t.Context(), "kit", true),
	} {
		if cove.CodeOf(err) != cove.Denied {
			t.Errorf("%s of a shared template without the scope: %v", what, err)
		}
	}
	if kept.names["kit"] != "shared" || kept.names["acme/only"] != "shared" {
		t.Errorf("there are %v", kept.names)
	}
	if _, err := e.As(admin).Templates().Tag(t.Context(), "only", "kit.v2", true); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("a tenant's template was shared under another name: %v", err)
	}
	made, err := e.As(admin).Templates().Build(t.Context(), cove.TemplateRequest{Name: "kit", Shared: true, Files: strings.NewReader("next")})
	if err != nil || !made.Shared || kept.names["kit"] != "next" {
		t.Errorf("the operator built %+v, %v", made, err)
	}
	if err := e.As(admin).Templates().Delete(t.Context(), "kit", true); err != nil || kept.names["kit"] != "" {
		t.Errorf("the operator deleted it: %v", err)
	}
}

// TestTemplateOfASessionStays: a session finds what it was made from, after a stop, in
// its fork, and after the server's restart, also if the name is shared by then.
func TestTemplateOfASessionStays(t *testing.T) {
	w, kept := twoTenants(t, "acme/kit")
	kept.names["acme/kit"] = "of acme" // from before kit was shared
	e, err := w.tryOpen(func(c *engine.Config) { c.Templates = kept })
	if err != nil {
		t.Fatal(err)
	}
	p := e.As(builder("acme"))
	s := mustOpen(t, p, cove.Spec{Template: "kit", Thread: "1"})
	_, err = p.Sessions().Stop(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.shut(e, w.provider)
	e = w.open(func(c *engine.Config) { c.Templates = kept })
	p = e.As(builder("acme"))
	started, err := p.Sessions().Start(t.Context(), s.ID)
	if err != nil || started.Spec.Template != "kit" {
		t.Fatalf("started %+v, %v", started, err)
	}
	fork, err := p.Snapshots().Fork(t.Context(), s.ID, cove.ForkRequest{})
	if err != nil || fork.Spec.Template != "kit" {
		t.Fatalf("forked %+v, %v", fork, err)
	}
	shot, err := p.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{})
	if err != nil || shot.Template != "kit" {
		t.Errorf("the snapshot is %+v, %v", shot, err)
	}
	for _, id := range []cove.ID{s.ID, fork.ID} {
		rec, err := w.store.GetSession(t.Context(), id)
		if err != nil || rec.Spec.Template != "acme/kit" {
			t.Errorf("the record of %s is %+v, %v", id, rec, err)
		}
	}
	for one, err := range p.Sessions().List(t.Context(), cove.SessionFilter{}) {
		if err != nil || one.Spec.Template != "kit" {
			t.Errorf("the list has %+v, %v", one, err)
		}
	}
}

// TestJournalNamesTemplates: the journal says which template was changed, and whether all
// tenants share it.
func TestJournalNamesTemplates(t *testing.T) {
	w, kept := twoTenants(t)
	e := w.open(func(c *engine.Config) { c.Templates = kept })
	if _, err := e.As(builder("acme")).Templates().Tag(t.Context(), "kit", "only", false); err != nil {
		t.Fatal(err)
	}
	if err := e.As(builder("acme", cove.ScopeAdmin)).Templates().Delete(t.Context(), "kit", true); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"template.tag": `{"shared":false,"template":"only"}`, "template.delete": `{"shared":true,"template":"kit"}`}
	for ev, err := range w.journal.Events(t.Context(), cove.EventFilter{Kind: "template."}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Phase == cove.Intent && string(ev.Data) == want[ev.Kind] {
			delete(want, ev.Kind)
		}
	}
	if len(want) > 0 {
		t.Errorf("the journal lacks %v", want)
	}
}
