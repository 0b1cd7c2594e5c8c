package engine_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
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

func (s *rack) BuildTemplate(_ context.Context, req cove.TemplateRequest) (*cove.Template, error) {
	data, err := io.ReadAll(req.Files)
	s.names[req.Name] = string(data)
	return &cove.Template{Name: req.Name, Digest: string(data)}, err
}

func (s *rack) TagTemplate(_ context.Context, name, as string) (*cove.Template, error) {
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
	if made, err := p.Tag(t.Context(), "zoo", "zoo.v1"); err != nil || made.Digest != "one" {
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
	if err := p.Delete(t.Context(), "zoo.v1"); err != nil {
		t.Error(err)
	}
	if err := p.Delete(t.Context(), "zoo.v1"); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("what is not there was removed: %v", err)
	}
	user := boss
	user.Scopes = []cove.Scope{cove.ScopeRead, cove.ScopeWrite, cove.ScopeExec}
	if err := e.As(user).Templates().Delete(t.Context(), "zoo"); cove.CodeOf(err) != cove.Denied {
		t.Errorf("somebody removed what is everybody's: %v", err)
	}
	if err := openEngine(t).As(boss).Templates().Delete(t.Context(), "zoo"); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("without templates to keep it gave %v", err)
	}
}
