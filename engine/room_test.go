package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

func oneRoom(c *engine.Config) { c.MaxSessions, c.Evict = 1, true }

func TestAStoppedWorkspaceComesBackWithItsLinks(t *testing.T) {
	p := openEngine(t).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	sh(t, p, s.ID, "mkdir -p v/bin; ln -s /usr/bin/python3 v/bin/python; ln -s ../.. v/up; ln -s gone dangling; echo work > important")
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"v/bin/python": "/usr/bin/python3", "v/up": "../..", "dangling": "gone"} {
		if fi, err := p.Files(s.ID).Stat(t.Context(), name); err != nil || fi.Link != want {
			t.Errorf("%s points to %q (%v), want %q", name, fi.Link, err, want)
		}
	}
	if got := sh(t, p, s.ID, "cat important"); got != "work\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestAVictimThatCannotBeStoppedIsPassedOver(t *testing.T) {
	w := newWorld(t)
	p := w.open(func(c *engine.Config) { c.MaxSessions, c.Evict = 2, true }).As(boss)
	broken := mustOpen(t, p, cove.Spec{User: "broken"})
	fine := mustOpen(t, p, cove.Spec{User: "fine"})
	if err := w.provider.Remove(t.Context(), broken.ID); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, p, cove.Spec{User: "next"})
	if got := state(t, p, broken.ID); got != cove.Failed {
		t.Errorf("the session whose sandbox is gone is %s, want error", got)
	}
	mustOpen(t, p, cove.Spec{User: "last"}) // the broken one gave its room back
	if got := state(t, p, fine.ID); got != cove.Stopped {
		t.Errorf("the one that could be stopped is %s", got)
	}
}

// TestWorkspaceIsPartOfMemory: a workspace in memory is in the one number that a
// session counts for. A size that was not asked for shrinks to half of that, and one
// that leaves programs too little is refused.
func TestWorkspaceIsPartOfMemory(t *testing.T) {
	p := openEngine(t, func(c *engine.Config) { c.MaxMemory, c.Defaults.Workspace.Size = 2*cove.GiB, 500*cove.MiB }).As(boss)
	if err := p.Admin().SetTenant(t.Context(), cove.Tenant{Name: cove.DefaultTenant, Quota: cove.Bounds{Memory: cove.GiB}}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		memory cove.Bytes
		w      cove.Workspace
		size   cove.Bytes // 0: it is refused
	}{
		"the usual":             {cove.GiB, cove.Workspace{}, 500 * cove.MiB},
		"half of little":        {100 * cove.MiB, cove.Workspace{}, 50 * cove.MiB},
		"a smaller one":         {16 * cove.MiB, cove.Workspace{Size: cove.MiB}, cove.MiB},
		"three quarters":        {cove.GiB, cove.Workspace{Size: 768 * cove.MiB}, 768 * cove.MiB},
		"more than that":        {cove.GiB, cove.Workspace{Size: 769 * cove.MiB}, 0},
		"as much as the memory": {64 * cove.MiB, cove.Workspace{Size: 64 * cove.MiB}, 0},
		"on disk":               {16 * cove.MiB, cove.Workspace{Kind: cove.WorkspaceDisk, Size: 20 * cove.GiB}, 20 * cove.GiB},
		"the usual on disk":     {16 * cove.MiB, cove.Workspace{Kind: cove.WorkspaceDisk}, 500 * cove.MiB},
	} {
		s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Resources: cove.Resources{Memory: tc.memory}, Workspace: tc.w}})
		if tc.size == 0 {
			wantCode(t, err, cove.Invalid, "")
			if e, ok := errors.AsType[*cove.Error](err); !ok || e.Details["field"] != "workspace.size_mb" || !strings.Contains(cove.RemedyOf(err), "memory_limit") {
				t.Errorf("%s: %v, %q", name, err, cove.RemedyOf(err))
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Spec.Workspace.Size != tc.size || s.Memory != tc.memory {
			t.Errorf("%s: the workspace has %s and the session counts for %s", name, s.Spec.Workspace.Size, s.Memory)
		}
		if stats, err := p.Admin().Stats(t.Context()); err != nil || stats.Memory != tc.memory {
			t.Errorf("%s: all sessions count for %s, %v", name, stats.Memory, err)
		}
		if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Resources: cove.Resources{Memory: 1025 * cove.MiB}}})
	wantCode(t, err, cove.Exhausted, "")
}

// TestSizesOfAProvider are what the operator says of it. They are in the spec, so that
// admission and callers see what is enforced.
func TestSizesOfAProvider(t *testing.T) {
	p := openEngine(t, func(c *engine.Config) {
		c.MaxMemory = 2 * cove.GiB
		c.Sizes = map[string]cove.Resources{c.Provider: {CPUs: 0.5, Memory: 256 * cove.MiB}, "other": {CPUs: 9, Memory: cove.TiB}}
	}).As(boss)
	s := mustOpen(t, p, cove.Spec{Flavor: "large"})
	if r := s.Spec.Resources; r.CPUs != 0.5 || r.Memory != 256*cove.MiB || s.Memory != r.Memory || s.Spec.Workspace.Size != 128*cove.MiB {
		t.Errorf("%+v", s)
	}
	if s := mustOpen(t, p, cove.Spec{Resources: cove.Resources{Memory: 64 * cove.MiB}}); s.Spec.Resources.Memory != 64*cove.MiB {
		t.Errorf("a session that asked has %s", s.Spec.Resources.Memory)
	}
	if stats, err := p.Admin().Stats(t.Context()); err != nil || stats.MaxSessions != 8 {
		t.Errorf("%d sessions of the default size fit, %v", stats.MaxSessions, err)
	}
}

func TestPausedSessionsMakeRoomToo(t *testing.T) {
	p := openEngine(t, oneRoom).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	sh(t, p, s.ID, "echo kept > file")
	if _, err := p.Snapshots().Pause(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	next := mustOpen(t, p, cove.Spec{})
	if got := state(t, p, s.ID); got != cove.Stopped {
		t.Errorf("the paused session is %s", got)
	}
	if _, err := p.Sessions().Close(t.Context(), next.ID, false); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, p, s.ID, "cat file"); got != "kept\n" {
		t.Errorf("the file holds %q", got)
	}
}

// waiter opens a session for b and waits for room; the answer comes later.
func waiter(t *testing.T, p cove.Platform) <-chan error {
	t.Helper()
	got := make(chan error, 1)
	go func() {
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: "b"}, OnFull: cove.WaitWhenFull})
		got <- err
	}()
	synctest.Wait()
	return got
}

func TestWhoWaitsGetsTheRoomOfWhatBecomesIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		a := mustOpen(t, p, cove.Spec{User: "a"})
		ran := make(chan error, 1)
		go func() {
			_, err := p.Processes(a.ID).Exec(t.Context(), cove.ExecRequest{Line: "sleep 20"})
			ran <- err
		}()
		synctest.Wait()
		got := waiter(t, p)
		after(10 * time.Second)
		if len(got) != 0 {
			t.Fatal("a busy session was evicted")
		}
		after(11 * time.Second)
		if err := <-got; err != nil {
			t.Error(err)
		}
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if st := state(t, p, a.ID); st != cove.Stopped {
			t.Errorf("the session that became idle is %s", st)
		}
	}, oneRoom)
}

func TestRejectAnswersAtOnceBehindOneWhoWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world, _ *engine.Engine, p cove.Platform) {
		mustOpen(t, p, cove.Spec{User: "a"})
		got := waiter(t, p)
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: "b"}})
		wantCode(t, err, cove.Exhausted, cove.ReasonCapacity)
		var queued cove.ID
		for s := range p.Sessions().List(t.Context(), cove.SessionFilter{User: "b"}) {
			queued = s.ID
		}
		if _, err := p.Sessions().Close(t.Context(), queued, false); err != nil {
			t.Errorf("closing a session that waits for room: %v", err)
		}
		wantCode(t, <-got, cove.NotFound, cove.ReasonSessionClosed)
	}, func(c *engine.Config) { c.MaxSessions = 1 })
}

func TestASessionIsKeptWhileItsProviderIsDown(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	s := mustOpen(t, first.As(boss), cove.Spec{User: "u"})
	sh(t, first.As(boss), s.ID, "echo here > file")
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.provider.Close(); err != nil {
		t.Fatal(err)
	}
	down := true
	w.fake.Hook = func(step string, _ cove.ID) error {
		if down && step == "probe" {
			return errInjected
		}
		return nil
	}
	second := w.open()
	_, err := second.As(boss).Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
	wantCode(t, err, cove.Conflict, cove.ReasonProviderDown)
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	down = false
	if got := sh(t, w.open().As(boss), s.ID, "cat file"); got != "here\n" {
		t.Errorf("when the provider is back the file holds %q", got)
	}
}

func TestWhatWasDoneIsNotSaidToBeUndone(t *testing.T) {
	w := newWorld(t)
	j := &brokenJournal{Journal: w.journal, phase: cove.AfterIt}
	p := w.open(func(c *engine.Config) { c.Journal = j }).As(boss)
	j.broken = true
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Unavailable, "")
	if m := cove.MessageOf(err); !strings.Contains(m, "it was done") || strings.Contains(m, "nothing is done") {
		t.Errorf("the message is %q", m)
	}
	_, err = p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Flavor: "huge"}})
	if m := cove.MessageOf(err); !strings.Contains(m, "went wrong (flavor") {
		t.Errorf("the message is %q", m)
	}
}

// dashProvider is a provider whose sandboxes have no bash.
type dashProvider struct{ *fake.Provider }

func (d dashProvider) Probe(ctx context.Context) (cove.Capabilities, error) {
	caps, err := d.Provider.Probe(ctx)
	caps.Shell = "sh"
	return caps, err
}

func TestAPolicyNeedsTheShellItWasReadFor(t *testing.T) {
	w := newWorld(t)
	p := w.open(func(c *engine.Config) { c.Providers = []cove.Provider{dashProvider{w.provider}} }).As(boss)
	s := mustOpen(t, p, cove.Spec{Policy: "agent-bash"})
	_, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "echo x"})
	wantCode(t, err, cove.Unsupported, "")
	x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Argv: []string{"echo", "x"}})
	if err != nil || string(x.Stdout.Data) != "x\n" {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestAPausedSessionThatCannotBeStoppedStaysPaused with its times, where another session
// of the tenant needs its room.
func TestAPausedSessionThatCannotBeStoppedStaysPaused(t *testing.T) {
	w := newWorld(t)
	p := w.open(oneRoom, func(c *engine.Config) { c.Archives = fullArchives{c.Archives} }).As(boss)
	s := mustOpen(t, p, cove.Spec{OnEnd: cove.EndPause})
	was, err := p.Snapshots().Pause(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Sessions().Open(t.Context(), cove.OpenRequest{})
	wantCode(t, err, cove.Exhausted, "")
	now, err := p.Sessions().Get(t.Context(), s.ID)
	if err != nil || now.State != cove.Paused || !now.ExpiresAt.Equal(was.ExpiresAt) || !now.LastActivity.Equal(was.LastActivity) {
		t.Errorf("it was %+v and is %+v, %v", was, now, err)
	}
}
