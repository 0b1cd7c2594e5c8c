package engine_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// showing is an interpreter that answers everything alike.
type showing struct{ answer func() *cove.CodeResult }

func (showing) Languages() []string { return []string{"any"} }

func (s showing) Open(context.Context, cove.Starter, cove.KernelSpec) (cove.Kernel, error) {
	return s, nil
}

func (showing) Adopt(context.Context, string, map[string]string) error { return nil }

func (s showing) Run(context.Context, cove.KernelRun) (*cove.CodeResult, error) {
	return s.answer(), nil
}

func (showing) Interrupt(context.Context) error { return nil }
func (showing) Alive() bool                     { return true }
func (showing) Close(context.Context) error     { return nil }

// shown runs code whose interpreter answers with r, within a budget of 1 KiB.
func shown(t *testing.T, r cove.CodeResult) *cove.CodeResult {
	t.Helper()
	r.Outcome = cove.Exited
	w := newWorld(t)
	e := w.open(func(c *engine.Config) {
		c.OutputBudget = cove.KiB
		c.Kernels = map[string]cove.Kernels{"": showing{func() *cove.CodeResult { return &r }}}
	})
	p := e.As(cove.Principal{Name: "a", Tenant: "a", Scopes: []cove.Scope{cove.ScopeAll}})
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "any", Code: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestValuesFitTheBudget(t *testing.T) {
	long := strings.Repeat("é", 1000)
	image := strings.Repeat("A", 5<<20)
	for _, tt := range []struct {
		name  string
		value cove.Rich
		forms []string
		cut   bool
	}{
		{"short", cove.Rich{"text/plain": "1", "text/html": "<b>1</b>", "image/png": "AAAA"}, []string{"image/png", "text/html", "text/plain"}, false},
		{"long text", cove.Rich{"text/plain": long}, []string{"text/plain"}, true},
		{"long HTML", cove.Rich{"text/plain": "1", "text/html": long}, []string{"text/plain"}, true},
		{"only long HTML", cove.Rich{"text/html": long}, []string{"text/plain"}, true},
		{"an image", cove.Rich{"image/png": image[:3<<20]}, []string{"image/png"}, false},
		{"too large an image", cove.Rich{"image/png": image}, []string{"text/plain"}, true},
		{"data", cove.Rich{"application/json": image[:1<<20]}, []string{"application/json"}, false},
		{"too much data", cove.Rich{"application/json": image, "text/plain": "x"}, []string{"text/plain"}, true},
	} {
		got := shown(t, cove.CodeResult{Results: []cove.Rich{tt.value}})
		v := got.Results[0]
		if d := cmp.Diff(tt.forms, slices.Sorted(maps.Keys(v))); d != "" || got.Truncated != tt.cut {
			t.Errorf("%s: truncated %t, forms (-want +got):\n%s", tt.name, got.Truncated, d)
		}
		if len(v["text/plain"]) > 1024 || strings.ContainsRune(v["text/plain"], '\uFFFD') {
			t.Errorf("%s: %d bytes: %.80q", tt.name, len(v["text/plain"]), v["text/plain"])
		}
	}
	got := shown(t, cove.CodeResult{Results: []cove.Rich{{"text/html": long}}})
	if want := "(left out, for want of room in the answer: text/html of 2000)"; got.Results[0]["text/plain"] != want {
		t.Errorf("%q, want %q", got.Results[0]["text/plain"], want)
	}
}

// TestValuesShareTheBudget: a thousand values are not a way around it.
func TestValuesShareTheBudget(t *testing.T) {
	r := cove.CodeResult{Error: &cove.CodeError{Name: "E", Value: strings.Repeat("v", 5000), Traceback: "head\n" + strings.Repeat("t", 5000) + "\ntail"}}
	for range 50 {
		r.Results = append(r.Results, cove.Rich{"text/plain": strings.Repeat("x", 500)})
	}
	got := shown(t, r)
	total := 0
	for _, v := range got.Results {
		total += len(v["text/plain"])
	}
	if len(got.Results) != 50 || total > 1024+50*64 || !got.Truncated {
		t.Errorf("%d values of %d bytes together, truncated %t", len(got.Results), total, got.Truncated)
	}
	e := got.Error
	if e.Name != "E" || len(e.Value) > 1024 || len(e.Traceback) > 1024 || !strings.HasPrefix(e.Traceback, "head\n") || !strings.HasSuffix(e.Traceback, "\ntail") {
		t.Errorf("%d and %d bytes: %.80q", len(e.Value), len(e.Traceback), e.Traceback)
	}
}
