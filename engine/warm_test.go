package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

func TestAWarmInterpreterBecomesThatOfAContext(t *testing.T) {
	inKitchen(t, func(t *testing.T, k *dishes, st *stove, p cove.Platform) {
		wantDishes(t, k, brief{Language: "python", Warm: true})
		first := k.first()
		if first.spec.Keep == "" {
			t.Error("an interpreter that waits cannot outlive the server")
		}
		if diff := cmp.Diff(cove.KernelSpec{Language: "python", Dir: "/", Warm: true, Preload: []string{"base-python"}, Keep: first.spec.Keep}, first.spec); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
		if st.started != 1 {
			t.Errorf("%d programs were started in the spare", st.started)
		}
		s := mustOpen(t, p, cove.Spec{Env: map[string]string{"A": "1"}})
		runIn(t, p, s.ID, "python")
		if diff := cmp.Diff(map[string]string{"A": "1"}, first.env); diff != "" || first.dir != cove.WorkspacePath || first.runs != 1 {
			t.Errorf("adopted in %q, ran %d; environment (-want +got):\n%s", first.dir, first.runs, diff)
		}
		// What it starts now, it starts in the session.
		after(time.Minute)
		before := st.started
		if pr, err := first.in.Start(t.Context(), cove.Command{Argv: []string{"true"}}); err != nil || pr == nil || st.started != before {
			t.Errorf("started %v, %v, %d in spares", pr, err, st.started-before)
		}
		// The next context of the language has its own.
		ctx, err := p.Contexts(s.ID).Open(t.Context(), cove.ContextSpec{Language: "python", Name: "other"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Context: ctx.Name, Code: "1"}); err != nil {
			t.Fatal(err)
		}
		all := k.brief()
		if last := all[len(all)-1]; last.Warm || last.Runs != 1 {
			t.Errorf("the second context got %+v", last)
		}
	})
}

// TestWhatDoesNotFitIsStartedAnew: whatever an interpreter only learns when it
// begins, it must learn from its own session.
func TestWhatDoesNotFitIsStartedAnew(t *testing.T) {
	for name, spec := range map[string]cove.Spec{
		"processes": {Resources: cove.Resources{PIDs: 17}},
		"flavor":    {Flavor: "large"},
		"memory":    {Resources: cove.Resources{Memory: 64 * cove.MiB}},
		"linker":    {Env: map[string]string{"LD_LIBRARY_PATH": "/workspace"}},
		"python":    {Env: map[string]string{"PYTHONHASHSEED": "1"}},
		"clock":     {Env: map[string]string{"TZ": "UTC"}},
	} {
		t.Run(name, func(t *testing.T) {
			inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
				s := mustOpen(t, p, spec)
				if first := k.brief()[0]; !first.Closed || first.Runs != 0 {
					t.Errorf("the warm one is %+v", first)
				}
				k.forget()
				runIn(t, p, s.ID, "python")
				if !slices.Contains(k.brief(), brief{Language: "python", Runs: 1}) {
					t.Errorf("ran in %+v", k.brief())
				}
			})
		})
	}
}

// TestTheNextSpareIsLikeTheLastSession: its bound on processes is that of the
// sessions that come.
func TestTheNextSpareIsLikeTheLastSession(t *testing.T) {
	inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
		mustOpen(t, p, cove.Spec{Flavor: "large"})
		after(time.Minute)
		s := mustOpen(t, p, cove.Spec{Flavor: "large"})
		runIn(t, p, s.ID, "python")
		for _, b := range k.brief() {
			if !b.Warm {
				t.Errorf("a cold one was started: %+v", b)
			}
		}
	})
}

func TestAWarmInterpreterThatCannotBeUsed(t *testing.T) {
	for name, spoil := range map[string]func(*dishes){
		"refuses": func(k *dishes) { k.refuse = errors.New("no") },
		"dead":    func(k *dishes) { _ = k.first().Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
				spoil(k)
				s := mustOpen(t, p, cove.Spec{})
				runIn(t, p, s.ID, "python")
				if all := k.brief(); !all[0].Closed || !slices.Contains(all, brief{Language: "python", Runs: 1}) {
					t.Errorf("interpreters are %+v", all)
				}
			})
		})
	}
	t.Run("does not start", func(t *testing.T) {
		inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
			k.broken = errors.New("no")
			mustOpen(t, p, cove.Spec{}) // takes the good one
			after(time.Minute)
			k.forget()
			s := mustOpen(t, p, cove.Spec{})
			runIn(t, p, s.ID, "python")
			wantDishes(t, k, brief{Language: "python", Runs: 1})
		})
	})
}

func TestWarmInterpretersNobodyUsesAreClosed(t *testing.T) {
	inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{})
		after(time.Minute)
		if k.brief()[0].Closed {
			t.Error("closed after a minute")
		}
		after(2 * time.Minute)
		if !k.brief()[0].Closed {
			t.Error("still there after three minutes")
		}
		runIn(t, p, s.ID, "python")
	})
}

func TestWarmInterpretersEndWithTheirSession(t *testing.T) {
	inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{})
		if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		if !k.brief()[0].Closed {
			t.Error("it outlived its session")
		}
	})
}

// TestAClaimDoesNotWaitForAnInterpreter: who wants it waits, and nobody else.
func TestAClaimDoesNotWaitForAnInterpreter(t *testing.T) {
	inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
		k.wait = make(chan struct{})
		mustOpen(t, p, cove.Spec{})
		after(time.Second) // the next one is on its way
		k.forget()
		began := time.Now()
		s := mustOpen(t, p, cove.Spec{})
		if time.Since(began) > 0 {
			t.Error("the claim waited")
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Contexts(s.ID).Run(short, cove.CodeRequest{Language: "python", Code: "1"})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller that left got %v", err)
		}
		close(k.wait)
		runIn(t, p, s.ID, "python")
		if first := k.brief()[0]; !first.Warm || first.Runs != 1 {
			t.Errorf("ran in %+v", first)
		}
	})
}

func TestLanguagesThatRanAreWarm(t *testing.T) {
	inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{})
		for _, language := range []string{"python", "js", "bash"} {
			runIn(t, p, s.ID, language)
			after(time.Second)
		}
		k.forget()
		mustOpen(t, p, cove.Spec{})
		after(time.Minute)
		wantDishes(t, k, brief{Language: "bash", Warm: true}, brief{Language: "node", Warm: true})
		after(10 * time.Minute)
		k.forget()
		mustOpen(t, p, cove.Spec{})
		after(time.Minute)
		wantDishes(t, k, brief{Language: "python", Warm: true})
	})
}

// TestNothingIsWarmedForNobody: where sessions run no code, interpreters are not
// started for them for ever.
func TestNothingIsWarmedForNobody(t *testing.T) {
	inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
		var s *cove.Session
		for range 12 {
			s = mustOpen(t, p, cove.Spec{})
			after(time.Second)
		}
		if n := len(k.brief()); n != 8 {
			t.Errorf("%d interpreters were started for nobody", n)
		}
		runIn(t, p, s.ID, "node")
		after(time.Minute)
		mustOpen(t, p, cove.Spec{})
		after(time.Minute)
		if all := k.brief(); all[len(all)-1] != (brief{Language: "node", Warm: true}) {
			t.Errorf("after code had run there are %+v", all)
		}
	})
}

func TestASpareThatCannotBeClaimedTakesItsInterpretersAlong(t *testing.T) {
	inKitchen(t, func(t *testing.T, k *dishes, st *stove, p cove.Platform) {
		st.refuse = cove.Errorf(cove.Unavailable, "no")
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
		wantCode(t, err, cove.Unavailable, "")
		if !k.brief()[0].Closed {
			t.Error("its interpreter is still there")
		}
		if _, err := k.first().in.Start(t.Context(), cove.Command{}); err == nil {
			t.Error("a program started where nothing is")
		}
	})
}

func TestTheTemplateNodeHasAWarmNode(t *testing.T) {
	inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
		mustOpen(t, p, cove.Spec{Template: "node"})
		after(time.Minute)
		if !slices.Contains(k.brief(), brief{Language: "node", Warm: true}) {
			t.Errorf("there are %+v", k.brief())
		}
	})
}

func TestOffMeansNoWarmInterpreters(t *testing.T) {
	inKitchen(t, func(t *testing.T, k *dishes, _ *stove, p cove.Platform) {
		s := mustOpen(t, p, cove.Spec{})
		runIn(t, p, s.ID, "python")
		wantDishes(t, k, brief{Language: "python", Runs: 1})
	}, func(c *engine.Config) { c.Warm = false })
}

// TestHeatBeforeThereIsAnEngine: a run of one piece of code has its interpreter
// started with its sandbox.
func TestHeatBeforeThereIsAnEngine(t *testing.T) {
	k := &dishes{}
	w := newWorld(t)
	first := true
	e := w.open(func(c *engine.Config) {
		st := &stove{Provider: c.Providers[0]}
		c.Providers, c.Kernels, c.Warm = []cove.Provider{st}, map[string]cove.Kernels{"": k}, true
		heat := *c
		c.Spare = func(ctx context.Context, m cove.Mold) (cove.Spare, bool) {
			spare, err := st.Prepare(ctx, m)
			if err != nil || !first {
				return nil, false
			}
			first = false
			if same := heat.Heat(spare, m, cove.Spec{}, "cobol"); same != spare {
				t.Error("heated for a language that nobody speaks")
			}
			return heat.Heat(spare, m, cove.Spec{Resources: cove.Resources{PIDs: 99}}, "js"), true
		}
	})
	p := e.As(boss)
	s := mustOpen(t, p, cove.Spec{Resources: cove.Resources{PIDs: 99}})
	runIn(t, p, s.ID, "node")
	wantDishes(t, k, brief{Language: "node", Warm: true, Dir: cove.WorkspacePath, Runs: 1})
}

// TestASpareWithoutStartersStaysAsItIs: the provider cannot start anything ahead.
func TestASpareWithoutStartersStaysAsItIs(t *testing.T) {
	p, err := fake.New(fake.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	plain := struct{ cove.Spare }{}
	c := engine.Config{Warm: true, Kernels: map[string]cove.Kernels{"": &dishes{}}}
	if got := c.Heat(plain, cove.Mold{}, cove.Spec{}, "python"); got != cove.Spare(plain) {
		t.Errorf("got %T", got)
	}
}

// TestModulesAreImportedAheadWhereTheyCanBe: what cannot be forked is started.
func TestModulesAreImportedAheadWhereTheyCanBe(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int // programs that were started
	}{
		"forked":      {nil, 0},
		"cannot be":   {cove.Errorf(cove.Unsupported, "no"), 1},
		"was claimed": {cove.Errorf(cove.Conflict, "no"), 1},
		"broken":      {cove.Errorf(cove.Unavailable, "no"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			k, st := &dishes{}, &stove{}
			var made *ahead
			st.wrap = func(p *pan) cove.Spare {
				made = &ahead{pan: p, err: tc.err}
				return made
			}
			inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
				mustOpen(t, p, cove.Spec{})
				after(time.Minute)
				if diff := cmp.Diff([]string{"numpy"}, made.modules); diff != "" || st.started != tc.want {
					t.Errorf("%d started; modules (-want +got):\n%s", st.started, diff)
				}
			}, func(c *engine.Config) {
				st.Provider = c.Providers[0]
				c.Providers, c.Kernels = []cove.Provider{st}, map[string]cove.Kernels{"": k}
				c.Warm, c.PoolSize, c.Preload = true, 1, func(string, string) []string { return []string{"numpy"} }
			})
		})
	}
}
