package escape_test

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestAttacksAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range escape.Battery() {
		if seen[a.Name] || a.Name == "" || strings.ToLower(a.Name) != a.Name || strings.ContainsAny(a.Name, " /-.") {
			t.Errorf("%q is not a good name, or is used twice", a.Name)
		}
		seen[a.Name] = true
		if a.Try == "" || strings.HasSuffix(a.Try, ".") || len(a.Try) > 90 || len(a.Via) == 0 {
			t.Errorf("%s: %q, by way of %v", a.Name, a.Try, a.Via)
		}
		for _, v := range a.Via {
			if !slices.Contains(escape.Vias(), v) {
				t.Errorf("%s: unknown way %q", a.Name, v)
			}
		}
	}
}

func newFake(t *testing.T, c fake.Config) *fake.Provider {
	t.Helper()
	c.Dir = t.TempDir()
	p, err := fake.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// TestNoBoundary: what has none is not attacked, and says so.
func TestNoBoundary(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	p := newFake(t, fake.Config{})
	tried := map[escape.Via]int{}
	for f, err := range escape.Run(t.Context(), p, escape.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if f.GotThrough() {
			t.Errorf("%+v", f)
		}
		if f.Skipped == "" {
			tried[f.Via]++
		} else if !strings.Contains(f.Skipped, "boundary is none") || f.Held {
			t.Errorf("%+v", f)
		}
	}
	if tried[escape.Exec]+tried[escape.Terminal] != 0 || tried[escape.Files] == 0 {
		t.Errorf("tried %v", tried)
	}
	for id, err := range p.List(t.Context()) {
		t.Errorf("left a sandbox: %s, %v", id, err)
	}
}

func TestErrors(t *testing.T) {
	p := newFake(t, fake.Config{})
	for what, c := range map[string]struct {
		options escape.Options
		p       cove.Provider
		code    cove.Code
	}{
		"an unknown attack":     {escape.Options{Only: []string{"teleport"}}, p, cove.Invalid},
		"a provider not ready":  {escape.Options{}, newFake(t, fake.Config{Unready: "it is shy"}), cove.Unavailable},
		"a provider that broke": {escape.Options{}, unprobed{p}, cove.Internal},
	} {
		n := 0
		for f, err := range escape.Run(t.Context(), c.p, c.options) {
			if n++; cove.CodeOf(err) != c.code || n > 1 {
				t.Errorf("%s: %+v, %v", what, f, err)
			}
		}
		if n == 0 {
			t.Errorf("%s: nothing happened", what)
		}
	}
	if _, err := escape.RunOne(t.Context(), p, "read_outside", escape.Files, escape.Options{}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a way that makes no sense: %v", err)
	}
}
