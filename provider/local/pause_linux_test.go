package local_test

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
)

// pauser is that of a sandbox, where the host can pause any.
func pauser(t *testing.T, s cove.Sandbox) cove.Pauser {
	t.Helper()
	p, ok := cove.As[cove.Pauser](s)
	if !ok {
		linuxtest.Need(t, errors.New("this host cannot freeze control groups"))
	}
	return p
}

func TestPaused(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	s := create(t, p)
	says(t, s)
	pause := pauser(t, s)
	must(t, pause.Pause(t.Context()))
	u, err := s.Usage(t.Context())
	must(t, err)
	if u.Files != 1 || u.CPU == 0 || u.Disk == 0 {
		t.Errorf("the usage while paused is %+v", u)
	}
	again, err := p.Attach(t.Context(), s.ID())
	must(t, err)
	must(t, pauser(t, again).Pause(t.Context())) // it is the same sandbox
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := again.Start(ended, cove.Command{Argv: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("start: %v", err)
	}
	if err := pause.Resume(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("resume: %v", err)
	}
	must(t, pause.Resume(t.Context()))
	must(t, pauser(t, again).Resume(t.Context()))
	says(t, s)
	must(t, pause.Pause(t.Context()))
	must(t, p.Close()) // with a sandbox that is paused
	wants(t, cove.NotFound, pause.Resume(t.Context()), "resume")
}

// TestPausedKill: others run on only if they did before.
func TestPausedKill(t *testing.T) {
	s := create(t, provider(t, config(t.TempDir())))
	pause := pauser(t, s)
	sleeper, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
	must(t, err)
	must(t, pause.Pause(t.Context()))
	for range 2 {
		must(t, sleeper.Kill(t.Context()))
		r, err := sleeper.Wait(t.Context())
		if err != nil || r.Outcome != cove.Killed {
			t.Errorf("%+v, %v", r, err)
		}
		if !local.Frozen(s) {
			t.Error("the sandbox runs")
		}
	}
	must(t, pause.Resume(t.Context()))
	must(t, sleeper.Kill(t.Context()))
	says(t, s)
}

// TestPausedGroupGone: what the kernel refuses is said, and nothing hangs.
func TestPausedGroupGone(t *testing.T) {
	s := create(t, provider(t, config(t.TempDir())))
	pause := pauser(t, s)
	sleeper, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
	must(t, err)
	must(t, pause.Pause(t.Context()))
	// The kernel forgets a group whose processes are dead when it is removed.
	must(t, unix.Kill(local.PID(s), unix.SIGKILL))
	must(t, local.RemoveGroup(t.Context(), s))
	wants(t, cove.Unavailable, pause.Resume(t.Context()), "resume")
	wants(t, cove.Unavailable, sleeper.Kill(t.Context()), "kill")
	must(t, s.Destroy(t.Context()))
}

// pause pauses all, says what there is and waits to be killed.
func (l left) pause(ctx context.Context, p *local.Provider) error {
	for _, id := range l.IDs {
		s, err := p.Attach(ctx, id)
		if err != nil {
			return err
		}
		if pause, ok := cove.As[cove.Pauser](s); ok {
			if err := pause.Pause(ctx); err != nil {
				return err
			}
		}
	}
	return l.wait(p)
}

// TestPausedCrash: what was paused when its holder was killed cannot end by
// itself, and is found and removed.
func TestPausedCrash(t *testing.T) {
	cfg := config(t.TempDir())
	p := provider(t, cfg)
	pauser(t, create(t, p))
	must(t, p.Close())
	l := crashedNow(t, cfg.Dir, "paused", false)
	p = provider(t, cfg)
	if got := ids(t, p); len(got) != len(l.IDs) {
		t.Errorf("listed are %v, left were %v", got, l.IDs)
	}
	for _, id := range l.IDs {
		must(t, p.Remove(t.Context(), id))
	}
	for _, pid := range l.Processes {
		ends(t, "all processes are gone", func() bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) })
	}
}
