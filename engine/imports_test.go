package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/provider/fake"
)

// pythonic gives an engine a language that is called python, and rules about its
// imports.
func pythonic(t *testing.T, imports policy.Imports) func(*engine.Config) {
	t.Helper()
	rules, err := policy.New(policy.Config{Imports: imports})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *engine.Config) {
		c.Policy = rules
		c.Kernels = map[string]cove.Kernels{"": fake.Kernels{Names: []string{"python", "calc"}}}
	}
}

func sandboxes(t *testing.T, p cove.Provider) []cove.ID {
	t.Helper()
	var ids []cove.ID
	for id, err := range p.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestImportModes(t *testing.T) {
	const dangerous = "x = 6 * 7\nimport os"
	for _, c := range []struct {
		name          string
		setting, asks cove.ImportMode
		code          string
		outcome       cove.Outcome
		looked        bool
	}{
		{"off", "", "", "x = 1", cove.Exited, false},
		{"a request tightens", "", cove.ImportsBlock, dangerous, cove.Blocked, true},
		{"a request asks to be warned", "", cove.ImportsWarn, "import os", cove.Exited, true},
		{"a request cannot relax", cove.ImportsBlock, cove.ImportsOff, dangerous, cove.Blocked, true},
		{"a request cannot relax to warn", cove.ImportsBlock, cove.ImportsWarn, dangerous, cove.Blocked, true},
		{"block", cove.ImportsBlock, "", dangerous, cove.Blocked, true},
		{"block, and nothing is found", cove.ImportsBlock, "", "x = 1", cove.Exited, true},
		{"block, and the code cannot be read", cove.ImportsBlock, "", "unread", cove.Blocked, true},
		{"block, and what looks breaks", cove.ImportsBlock, "", "crash", cove.Blocked, true},
		{"warn", cove.ImportsWarn, "", "import os", cove.Exited, true},
		{"warn, and what looks breaks", cove.ImportsWarn, "", "crash", cove.Exited, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newWorld(t).open(pythonic(t, policy.Imports{Mode: c.setting}))
			p := e.As(boss)
			in := p.Contexts(mustOpen(t, p, cove.Spec{}).ID)
			res, err := in.Run(t.Context(), cove.CodeRequest{Language: "py", Code: c.code, Imports: c.asks})
			if err != nil {
				t.Fatal(err)
			}
			if res.Outcome != c.outcome || (res.Security != nil) != c.looked {
				t.Errorf("got %+v with the report %+v", res, res.Security)
			}
			if c.outcome != cove.Blocked {
				return
			}
			if res.Refusal == nil || res.Refusal.Rule != policy.RuleImport || res.Security.Mode != cove.ImportsBlock || !strings.Contains(string(res.Stderr.Data), "blocked by rule") {
				t.Errorf("got %+v, %+v", res.Refusal, res.Security)
			}
			if c.code == dangerous && (res.Refusal.Reason != "Security policy blocked import: os" || res.Refusal.Line != 2 || len(res.Security.Blocked) != 1) {
				t.Errorf("got %+v, %+v", res.Refusal, res.Security)
			}
			if got, err := in.Run(t.Context(), cove.CodeRequest{Language: "python", Code: "print(x)"}); err != nil || got.Error == nil {
				t.Errorf("blocked code ran: %+v, %v", got, err)
			}
		})
	}
}

func TestSyntaxErrorsRunNothing(t *testing.T) {
	e := newWorld(t).open(pythonic(t, policy.Imports{Mode: cove.ImportsWarn}))
	p := e.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	res, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "python", Code: "print(1)\nsyntax"})
	if err != nil {
		t.Fatal(err)
	}
	if res.Error == nil || res.Error.Name != "SyntaxError" || res.Error.Line != 2 || res.Outcome != cove.Exited || res.ExitCode != 1 || len(res.Stdout.Data) > 0 || res.Context != "python" || res.Session != s.ID || res.Provider == "" || res.Template == "" {
		t.Errorf("got %+v", res)
	}
	_, err = p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "python", Context: "nowhere", Code: "syntax"})
	if cove.CodeOf(err) != cove.NotFound {
		t.Errorf("in a context that is not there: %v", err)
	}
}

func TestTrustedCallers(t *testing.T) {
	w := newWorld(t)
	e := w.open(pythonic(t, policy.Imports{Mode: cove.ImportsBlock}))
	s := mustOpen(t, e.As(boss), cove.Spec{})
	code := cove.CodeRequest{Language: "python", Code: "import os", Trusted: true}
	res, err := e.As(cove.Principal{Name: "trusted", Scopes: []cove.Scope{cove.ScopeExec, cove.ScopeTrusted}}).Contexts(s.ID).Run(t.Context(), code)
	if err != nil || res.Outcome == cove.Blocked || res.Security == nil || !res.Security.Bypassed {
		t.Errorf("got %+v, %v", res, err)
	}
	_, err = e.As(cove.Principal{Name: "stranger", Scopes: []cove.Scope{cove.ScopeExec}}).Contexts(s.ID).Run(t.Context(), code)
	if cove.CodeOf(err) != cove.Denied || !strings.Contains(err.Error(), "scope trusted") {
		t.Errorf("without the scope: %v", err)
	}
	if n := len(sandboxes(t, w.provider)); n != 1 {
		t.Errorf("there are %d sandboxes: somebody looked", n)
	}
	code.Trusted = false
	if res, err := e.As(boss).Contexts(s.ID).Run(t.Context(), code); err != nil || res.Outcome != cove.Blocked {
		t.Errorf("who may be trusted and does not ask for it: %+v, %v", res, err)
	}
	var notes []string
	for ev, err := range e.As(boss).Admin().Events(t.Context(), cove.EventFilter{Kind: "context.run"}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Phase == cove.Intent {
			notes = append(notes, ev.Principal+" "+string(ev.Effect)+" "+string(ev.Data))
		}
	}
	slices.Sort(notes)
	for i, want := range []string{`"imports":{"mode":"block","blocked":["os"]}`, "stranger deny", `"imports":{"mode":"off","bypass":true}`} {
		if len(notes) != 3 || !strings.Contains(notes[i], want) {
			t.Fatalf("the journal has %q, want %s", notes, want)
		}
	}
}

func TestLookingNeedsAnAnalyzer(t *testing.T) {
	e := newWorld(t).open(pythonic(t, policy.Imports{Mode: cove.ImportsBlock}), func(c *engine.Config) { c.Analyzers = nil })
	p := e.As(boss)
	in := p.Contexts(mustOpen(t, p, cove.Spec{}).ID)
	if _, err := in.Run(t.Context(), cove.CodeRequest{Language: "python", Code: "x = 1"}); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("got %v", err)
	}
	if _, err := in.Analyze(t.Context(), cove.AnalyzeRequest{Language: "python", Code: "x = 1"}); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("got %v", err)
	}
	if res, err := in.Run(t.Context(), cove.CodeRequest{Language: "calc", Code: "x = 1"}); err != nil || res.Security != nil {
		t.Errorf("another language: %+v, %v", res, err)
	}
}

// plain is a policy that knows nothing of imports.
type plain struct{}

func (plain) Decide(cove.Action) cove.Decision { return cove.Decision{Effect: cove.Allow} }

func TestRulesThatKnowNoImports(t *testing.T) {
	e := newWorld(t).open(pythonic(t, policy.Imports{}), func(c *engine.Config) { c.Policy = plain{} })
	p := e.As(boss)
	res, err := p.Contexts(mustOpen(t, p, cove.Spec{}).ID).Run(t.Context(), cove.CodeRequest{Language: "python", Code: "import math", Imports: cove.ImportsWarn})
	if err != nil || len(res.Security.Blocked) != 1 {
		t.Errorf("got %+v, %v", res, err)
	}
}

// TestCleanRoom: one is made for all, it counts, and it goes when nobody needs it.
func TestCleanRoom(t *testing.T) {
	w := newWorld(t)
	e := w.open(pythonic(t, policy.Imports{Mode: cove.ImportsBlock}), func(c *engine.Config) { c.MaxMemory = 3 * cove.GiB })
	p := e.As(boss)
	s := mustOpen(t, p, cove.Spec{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := p.Contexts("").Analyze(t.Context(), cove.AnalyzeRequest{Language: "python", Code: "import os"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ids := sandboxes(t, w.provider)
	if len(ids) != 2 || !slices.Contains(ids, s.ID) {
		t.Errorf("the sandboxes are %v", ids)
	}
	if _, err := p.Admin().ControlTask(t.Context(), "orphans", cove.RunTask); err != nil || len(sandboxes(t, w.provider)) != 2 {
		t.Errorf("the orphans task took the clean room: %v", err)
	}
	stats, err := p.Admin().Stats(t.Context())
	if err != nil || stats.Memory != cove.GiB+512*cove.MiB || stats.ActiveSessions != 1 {
		t.Errorf("the stats are %+v, %v", stats, err)
	}
	// Two more sessions need the room's memory.
	mustOpen(t, p, cove.Spec{})
	mustOpen(t, p, cove.Spec{})
	if n := len(sandboxes(t, w.provider)); n != 3 {
		t.Errorf("%d sandboxes after the memory was needed", n)
	}
	if _, err := p.Contexts(s.ID).Analyze(t.Context(), cove.AnalyzeRequest{Language: "python", Code: "import os"}); err != nil {
		t.Errorf("a full engine: %v", err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(sandboxes(t, w.provider)); n != 3 {
		t.Errorf("%d sandboxes after the end, want those of the sessions", n)
	}
}

func TestCleanRoomEndsWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e, err := w.tryOpen(pythonic(t, policy.Imports{}))
		if err != nil {
			t.Fatal(err)
		}
		defer w.shut(e, w.provider)
		look := cove.AnalyzeRequest{Language: "python", Code: "import os"}
		for range 3 {
			if _, err := e.As(boss).Contexts("").Analyze(t.Context(), look); err != nil {
				t.Fatal(err)
			}
			<-time.After(100 * time.Second)
			if n := len(sandboxes(t, w.provider)); n != 1 {
				t.Errorf("%d sandboxes while it is used", n)
			}
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if n := len(sandboxes(t, w.provider)); n != 0 {
			t.Errorf("%d sandboxes when nobody used it for long", n)
		}
	})
}

// TestCleanRoomAfterACrash: what a killed engine leaves is removed by the next.
func TestCleanRoomAfterACrash(t *testing.T) {
	w := newWorld(t)
	e := w.open(pythonic(t, policy.Imports{}))
	if _, err := e.As(boss).Contexts("").Analyze(t.Context(), cove.AnalyzeRequest{Language: "python", Code: "import os"}); err != nil {
		t.Fatal(err)
	}
	if n := len(sandboxes(t, w.provider)); n != 1 {
		t.Fatalf("%d sandboxes", n)
	}
	w.open(pythonic(t, policy.Imports{})) // the first one was never closed
	if ids := sandboxes(t, w.provider); len(ids) != 0 {
		t.Errorf("still there: %v", ids)
	}
}

// TestABrokenRoomIsReplaced: after what looks broke, the next one looks in a
// fresh room.
func TestABrokenRoomIsReplaced(t *testing.T) {
	w := newWorld(t)
	p := w.open(pythonic(t, policy.Imports{})).As(boss)
	got, err := p.Contexts("").Analyze(t.Context(), cove.AnalyzeRequest{Language: "python", Code: "crash", Imports: cove.ImportsBlock})
	if err != nil || got.Decision.Effect != cove.Deny || got.Security.Unread == "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if n := len(sandboxes(t, w.provider)); n != 0 {
		t.Errorf("%d sandboxes after it broke", n)
	}
	if got, err := p.Contexts("").Analyze(t.Context(), cove.AnalyzeRequest{Language: "python", Code: "import os"}); err != nil || len(got.Security.Imports) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestARoomThatCannotBeMade(t *testing.T) {
	broken := errors.New("no more sandboxes")
	var fail bool
	w := newWorld(t, func(c *fake.Config) {
		c.Hook = func(step string, _ cove.ID) error {
			if fail && strings.HasPrefix(step, "create") {
				return broken
			}
			return nil
		}
	})
	p := w.open(pythonic(t, policy.Imports{Mode: cove.ImportsBlock})).As(boss)
	in := p.Contexts(mustOpen(t, p, cove.Spec{}).ID)
	fail = true
	if _, err := in.Run(t.Context(), cove.CodeRequest{Language: "python", Code: "x = 1"}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	fail = false
	if _, err := in.Run(t.Context(), cove.CodeRequest{Language: "python", Code: "x = 1"}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// pending is an Analyzer that waits until it may go on.
type pending struct{ begun, goOn chan struct{} }

func (s pending) Analyze(ctx context.Context, _ cove.Starter, _, _ string) (*cove.SecurityReport, error) {
	s.begun <- struct{}{}
	select {
	case <-s.goOn:
		return &cove.SecurityReport{Imports: []cove.Import{}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestRoomsAreBounded(t *testing.T) {
	w := newWorld(t, func(c *fake.Config) { c.Templates = []string{"base", "a", "b", "c", "d", "e"} })
	s := pending{make(chan struct{}), make(chan struct{})}
	p := w.open(pythonic(t, policy.Imports{}), func(c *engine.Config) { c.Analyzers[""] = s }).As(boss)
	look := func(ctx context.Context, template string) error {
		_, err := p.Contexts("").Analyze(ctx, cove.AnalyzeRequest{Language: "python", Code: "x", Template: template})
		return err
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for _, template := range []string{"base", "a", "b"} {
		wg.Go(func() {
			if err := look(t.Context(), template); err != nil {
				t.Error(err)
			}
		})
		<-s.begun
	}
	left := make(chan error, 1)
	go func() { left <- look(ctx, "c") }()
	<-s.begun
	if err := look(t.Context(), "d"); cove.CodeOf(err) != cove.Exhausted {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
	close(s.goOn)
	wg.Wait()
	for _, template := range []string{"d", "e"} {
		wg.Go(func() { <-s.begun })
		if err := look(t.Context(), template); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		wg.Wait()
	}
	if n := len(sandboxes(t, w.provider)); n != 4 {
		t.Errorf("%d sandboxes, want as many as may be", n)
	}
}
