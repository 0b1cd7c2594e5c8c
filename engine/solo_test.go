package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/policy"
)

// soloist is a provider that notes what is prepared for one program.
type soloist struct {
	cove.Provider

	molds []cove.Mold
	err   error
}

func (p *soloist) PrepareSolo(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	p.molds = append(p.molds, m)
	if p.err != nil {
		return nil, p.err
	}
	preparer, _ := cove.As[cove.Preparer](p.Provider)
	return preparer.Prepare(ctx, m)
}

// soloEngine returns an engine for runs of one program on a soloist.
func soloEngine(t *testing.T) (*soloist, cove.Platform) {
	t.Helper()
	w := newWorld(t)
	var p *soloist
	e := w.open(func(c *engine.Config) {
		p = &soloist{Provider: c.Providers[0]}
		c.Providers, c.Fleeting, c.Solo = []cove.Provider{p}, true, true
	})
	return p, e.As(boss)
}

func TestSoloSessionsAreMadeForOneProgram(t *testing.T) {
	solo, p := soloEngine(t)
	s := mustOpen(t, p, cove.Spec{})
	if got := sh(t, p, s.ID, "echo hi"); got != "hi\n" {
		t.Errorf("got %q", got)
	}
	want := []cove.Mold{{Provider: "fake", Template: "base", Workspace: cove.WorkspaceMemory, Solo: true, Resources: s.Spec.Resources}}
	if diff := cmp.Diff(want, solo.molds); diff != "" {
		t.Errorf("prepared (-want +got):\n%s", diff)
	}
	// What asks for more gets a sandbox that stays.
	mustOpen(t, p, cove.Spec{Ports: []int{8080}})
	mustOpen(t, p, cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceDisk}})
	if len(solo.molds) != 1 {
		t.Errorf("prepared %+v", solo.molds)
	}
}

func TestSoloSessionThatCannotBeMade(t *testing.T) {
	solo, p := soloEngine(t)
	solo.err = cove.Errorf(cove.Exhausted, "no room")
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Exhausted, "")
}

// TestSoloIsForSoloists: other providers make what they make for everybody.
func TestSoloIsForSoloists(t *testing.T) {
	w := newWorld(t)
	p := w.open(func(c *engine.Config) { c.Solo = true }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	if got := sh(t, p, s.ID, "echo hi"); got != "hi\n" {
		t.Errorf("got %q", got)
	}
	rules, err := policy.New(policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{Provider: "fake", Solo: true, Policy: rules, Providers: []cove.Provider{w.provider}}
	if m, _ := cfg.MoldOf(cove.Spec{}); m.Solo {
		t.Error("the mold is solo")
	}
	cfg.Providers = []cove.Provider{&soloist{Provider: w.provider}}
	if m, _ := cfg.MoldOf(cove.Spec{}); !m.Solo {
		t.Error("the mold is not solo")
	}
	cfg.Shared = []cove.Volume{{Source: "/x", Target: "/y"}}
	if m, _ := cfg.MoldOf(cove.Spec{}); m.Solo {
		t.Error("a run with shared volumes is solo")
	}
}

// TestFreshEngineLooksForNothing: what an earlier process may have left is looked
// for, unless there was none.
func TestFreshEngineLooksForNothing(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		p := newWorld(t).open(func(c *engine.Config) {
			c.Providers, c.Fleeting, c.Solo, c.Fresh = []cove.Provider{&soloist{Provider: c.Providers[0]}}, true, true, fresh
		}).As(boss)
		tasks, err := p.Admin().Tasks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, task := range tasks {
			names = append(names, task.Name)
		}
		if slices.Contains(names, "orphans") == fresh || !slices.Contains(names, "expiry") {
			t.Errorf("fresh is %v: %v", fresh, names)
		}
	}
}

// TestMoldOfIsWhatIsPrepared: what is prepared before there is an engine fits what
// its session asks for then, with its resources.
func TestMoldOfIsWhatIsPrepared(t *testing.T) {
	w := newWorld(t)
	var p *soloist
	var cfg engine.Config
	e := w.open(func(c *engine.Config) {
		p = &soloist{Provider: c.Providers[0]}
		c.Providers, c.Fleeting, c.Solo = []cove.Provider{p}, true, true
		cfg = *c
	})
	for _, spec := range []cove.Spec{{}, {Flavor: "small"}, {Resources: cove.Resources{PIDs: 7, Memory: 64 * cove.MiB}}} {
		p.molds = nil
		mustOpen(t, e.As(boss), spec)
		want, ok := cfg.MoldOf(spec)
		if diff := cmp.Diff([]cove.Mold{want}, p.molds); !ok || diff != "" || want.Resources == (cove.Resources{}) {
			t.Errorf("%+v: prepared (-want +got):\n%s", spec, diff)
		}
	}
}
