//go:build !lean

package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// TestTemplatesOfTenants: over HTTP and with real sandboxes, the templates of one tenant
// are not there for another, which can use the same names and disturbs nothing.
func TestTemplatesOfTenants(t *testing.T) {
	cfg := localSettings(t)
	tree := shellTree(t)
	r, end := serve(t, cfg, daemon.Options{})
	admin, err := os.ReadFile(r.KeyFile)
	done(t, err)
	keys := map[string]string{}
	for _, tenant := range []string{"acme", "bravo"} {
		scopes := []cove.Scope{cove.ScopeRead, cove.ScopeWrite, cove.ScopeExec, cove.ScopeTemplates}
		_, keys[tenant], err = dial(t, r.URL, strings.TrimSpace(string(admin))).Admin().CreateKey(t.Context(), cove.KeyRequest{Tenant: tenant, Scopes: scopes})
		done(t, err)
	}
	acme, bravo := dial(t, r.URL, keys["acme"]), dial(t, r.URL, keys["bravo"])
	for name, text := range map[string]string{"one": "from one\n", "two": "from two\n"} {
		done(t, os.WriteFile(filepath.Join(tree, "greeting"), []byte(text), 0o644))
		_, err := daemon.BuildTemplate(t.Context(), cfg, daemon.TemplateBuild{Name: name, Dir: tree})
		done(t, err)
	}
	greeting := func(p cove.Platform, s *cove.Session) string {
		x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Argv: []string{"sh", "-c", `read line < /greeting; echo "$line"`}})
		done(t, err)
		return string(x.Stdout.Data)
	}
	open := func(p cove.Platform, thread string) *cove.Session {
		s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Template: "app", User: "u", Thread: thread}})
		done(t, err)
		return s
	}
	_, err = acme.Templates().Tag(t.Context(), "one", "app", false)
	done(t, err)
	s := open(acme, "1")
	if got := greeting(acme, s); got != "from one\n" || s.Spec.Template != "app" {
		t.Errorf("the sandbox of %q says %q", s.Spec.Template, got)
	}
	if _, err := bravo.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Template: "app"}}); !errors.Is(err, cove.Invalid) || strings.Contains(err.Error(), "acme") {
		t.Errorf("a template of another tenant: %v", err)
	}
	if err := bravo.Templates().Delete(t.Context(), "app", false); !errors.Is(err, cove.NotFound) {
		t.Errorf("deleting it: %v", err)
	}
	if _, err := bravo.Templates().Tag(t.Context(), "app", "mine", false); !errors.Is(err, cove.NotFound) {
		t.Errorf("tagging it: %v", err)
	}
	if _, err := bravo.Templates().Tag(t.Context(), "one", "two", true); !errors.Is(err, cove.Denied) {
		t.Errorf("tagging over a shared one: %v", err)
	}
	_, err = bravo.Templates().Tag(t.Context(), "two", "app", false)
	done(t, err)
	if got := greeting(bravo, open(bravo, "1")); got != "from two\n" {
		t.Errorf("the other tenant's sandbox says %q", got)
	}
	done(t, bravo.Templates().Delete(t.Context(), "app", false))
	if got, next := greeting(acme, s), greeting(acme, open(acme, "2")); got != "from one\n" || next != "from one\n" {
		t.Errorf("then the sandboxes say %q and %q", got, next)
	}
	for one, err := range bravo.Templates().List(t.Context()) {
		done(t, err)
		if one.Name == "app" || strings.Contains(one.Name, "/") {
			t.Errorf("the other tenant sees %+v", one)
		}
	}
	_, err = acme.Sessions().Stop(t.Context(), s.ID)
	done(t, err)
	for _, p := range []cove.Platform{acme, bravo} { // no sandbox outlives the server
		for one, err := range p.Sessions().List(t.Context(), cove.SessionFilter{}) {
			done(t, err)
			if one.ID != s.ID {
				_, err := p.Sessions().Close(t.Context(), one.ID, false)
				done(t, err)
			}
		}
	}
	end()
	r, _ = serve(t, cfg, daemon.Options{})
	acme = dial(t, r.URL, keys["acme"])
	if s, err = acme.Sessions().Start(t.Context(), s.ID); err != nil || greeting(acme, s) != "from one\n" {
		t.Errorf("after a restart of the server: %+v, %v", s, err)
	}
	_, err = acme.Sessions().Close(t.Context(), s.ID, false)
	done(t, err)
}
