package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/provider/fake"
)

var base = cove.Mold{Provider: "fake", Template: "base", Workspace: cove.WorkspaceMemory}

// pretender is a fake provider that takes its time, and a count of what it has
// on the disk.
func pretender(t *testing.T, change ...func(*fake.Config)) (p *fake.Provider, left func() int) {
	t.Helper()
	cfg := fake.Config{Dir: t.TempDir(), Latency: time.Second}
	for _, c := range change {
		c(&cfg)
	}
	p, err := fake.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, func() int { return len(entries(t, cfg.Dir)) }
}

func TestEarlySpareIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, left := pretender(t)
		e := daemon.PrepareEarly(t.Context(), []cove.Provider{p}, base, time.Minute)
		if _, ok := e.Take(t.Context(), cove.Mold{Provider: "fake", Template: "node", Workspace: cove.WorkspaceMemory}); ok {
			t.Error("a spare of another mold was given out")
		}
		spare, ok := e.Take(t.Context(), base)
		if !ok {
			t.Fatal("no spare")
		}
		if _, ok := e.Take(t.Context(), base); ok {
			t.Error("the spare was given out twice")
		}
		if err := e.Discard(); err != nil || left() != 1 {
			t.Errorf("what was taken is no longer there: %d, %v", left(), err)
		}
		s, err := spare.Claim(t.Context(), cove.NewID(), cove.Spec{Template: "base", Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Destroy(t.Context()); err != nil || left() != 0 {
			t.Errorf("%d left, %v", left(), err)
		}
	})
}

// TestEarlySpareIsNeverLeft: whoever gives up the wait for a spare leaves it to
// be discarded.
func TestEarlySpareIsNeverLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, left := pretender(t)
		e := daemon.PrepareEarly(t.Context(), []cove.Provider{p}, base, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := e.Take(ctx, base); ok {
			t.Error("a spare was there at once")
		}
		for range 2 {
			if err := e.Discard(); err != nil || left() != 0 {
				t.Errorf("%d left, %v", left(), err)
			}
		}
	})
}

func TestEarlySpareThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, left := pretender(t)
		plain, _ := pretender(t, func(c *fake.Config) { c.Name, c.Powers = "plain", []cove.Power{} })
		for _, tc := range []struct {
			mold   cove.Mold
			within time.Duration
		}{
			{base, time.Millisecond},
			{cove.Mold{Provider: "fake", Template: "none", Workspace: cove.WorkspaceMemory}, time.Minute},
			{cove.Mold{Provider: "plain", Template: "base", Workspace: cove.WorkspaceMemory}, time.Minute},
			{cove.Mold{Provider: "fake", Template: "base", Workspace: cove.WorkspaceMemory, Solo: true}, time.Minute},
			{cove.Mold{Provider: "nobody", Template: "base", Workspace: cove.WorkspaceMemory}, time.Minute},
		} {
			e := daemon.PrepareEarly(t.Context(), []cove.Provider{p, plain}, tc.mold, tc.within)
			if _, ok := e.Take(t.Context(), tc.mold); ok {
				t.Errorf("%+v: a spare", tc.mold)
			}
			if err := e.Discard(); err != nil || left() != 0 {
				t.Errorf("%+v: %d left, %v", tc.mold, left(), err)
			}
		}
	})
}

// soloist prepares sandboxes for one program as all others.
type soloist struct{ cove.Provider }

func (p soloist) PrepareSolo(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	preparer, _ := cove.As[cove.Preparer](p.Provider)
	return preparer.Prepare(ctx, m)
}

func TestEarlySoloSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, left := pretender(t)
		solo := base
		solo.Solo = true
		e := daemon.PrepareEarly(t.Context(), []cove.Provider{soloist{p}}, solo, time.Minute)
		if _, ok := e.Take(t.Context(), base); ok {
			t.Error("a spare for one program was given to one that wants more")
		}
		spare, ok := e.Take(t.Context(), solo)
		if !ok {
			t.Fatal("no spare")
		}
		if err := spare.Discard(t.Context()); err != nil || left() != 0 {
			t.Errorf("%d left, %v", left(), err)
		}
	})
}

// TestOneShotPreparesTheSandboxOfItsRun: a session of another kind is made all
// the same, and nothing stays of either.
func TestOneShotPreparesTheSandboxOfItsRun(t *testing.T) {
	for _, tc := range []struct{ said, opened string }{{"", ""}, {"python", "python"}, {"base", "node"}, {"none", ""}} {
		cfg := settings(t)
		l, err := daemon.OneShot(t.Context(), cfg, cove.Spec{Template: tc.said}, false)
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Template: tc.opened}})
		if err != nil {
			t.Fatalf("%+v: %v", tc, err)
		}
		ex, err := l.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Argv: []string{"echo", "hi"}})
		if err != nil || string(ex.Stdout.Data) != "hi\n" {
			t.Errorf("%+v: %+v, %v", tc, ex, err)
		}
		if _, err := l.Sessions().Close(t.Context(), s.ID, false); err != nil {
			t.Error(err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if left := entries(t, filepath.Join(cfg.Home, "oneshot", "0", "providers", "fake")); len(left) > 0 {
			t.Errorf("%+v left %v", tc, left)
		}
		if _, err := os.Stat(filepath.Join(cfg.Home, "oneshot", "0", "in-use")); err == nil {
			t.Errorf("%+v: the lane was not given back", tc)
		}
	}
}

// TestRunLooksForWhatAnotherLeft: in a lane whose last run was killed, and in no
// other.
func TestRunLooksForWhatAnotherLeft(t *testing.T) {
	cfg := settings(t)
	looks := func() bool {
		t.Helper()
		l, err := daemon.OneShot(t.Context(), cfg, cove.Spec{}, true)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		tasks, err := l.Admin().Tasks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(tasks, func(s cove.TaskStatus) bool { return s.Name == "orphans" })
	}
	for range 2 {
		if looks() {
			t.Error("a run looks for what none left")
		}
	}
	if err := os.WriteFile(filepath.Join(cfg.Home, "oneshot", "0", "in-use"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !looks() {
		t.Error("nobody looks for what a run left")
	}
	if looks() {
		t.Error("a run looks for what none left")
	}
}

// TestOneShotThatCannotBeginLeavesNothing: its sandbox was being prepared.
func TestOneShotThatCannotBeginLeavesNothing(t *testing.T) {
	cfg := settings(t)
	lane := filepath.Join(cfg.Home, "oneshot", "0")
	if err := os.MkdirAll(lane, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cfg.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lane, "journal"), nil, 0o600); err != nil { // where a folder should be
		t.Fatal(err)
	}
	if _, err := daemon.OneShot(t.Context(), cfg, cove.Spec{}, false); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("got %v", err)
	}
	if left := entries(t, filepath.Join(lane, "providers", "fake")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
