package local_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// leftBehind makes a sandbox whose provider is closed again: the keeper has it,
// and its spawner.
func leftBehind(t *testing.T) (cfg local.Config, s cove.Sandbox, maker int) {
	t.Helper()
	linuxtest.Need(t, local.Stacking())
	cfg = keeping(t.TempDir())
	p := layersKept(t, cfg)
	s, err := p.Create(t.Context(), cove.NewID(), boxSpec)
	must(t, err)
	sh(t, s, "echo one > one")
	maker = local.MakerPID(s)
	must(t, p.Close())
	return cfg, s, maker
}

// TestMakerGone is about layers over which nobody has rights any more: an ordinary
// user needs the spawner that made them.
func TestMakerGone(t *testing.T) {
	if os.Geteuid() == 0 {
		linuxtest.Again(t, "^TestMakerGone$")
		return
	}
	cfg, s, maker := leftBehind(t)
	must(t, unix.Kill(maker, unix.SIGKILL))
	p := layersKept(t, cfg)
	s = attach(t, p, s.ID())
	if got := sh(t, s, "cat one"); got != "one\n" {
		t.Errorf("the file has %q", got)
	}
	trier, _ := cove.As[cove.Trier](s)
	_, err := trier.Try(t.Context())
	wants(t, cove.Unavailable, err, "a trial")
	if cove.RemedyOf(err) == "" {
		t.Errorf("what to do is not said: %v", err)
	}
	must(t, s.Destroy(t.Context()))
	over(t, p, cfg.Dir)
}

// TestMakerOfOldPlan is about a spawner that another version left: what it made
// is its own to change, and it makes nothing more.
func TestMakerOfOldPlan(t *testing.T) {
	if os.Geteuid() == 0 {
		linuxtest.Again(t, "^TestMakerOfOldPlan$")
		return
	}
	cfg, s, maker := leftBehind(t)
	p := layersKept(t, cfg)
	same, err := p.Create(t.Context(), cove.NewID(), boxSpec)
	must(t, err)
	if local.MakerPID(same) != maker {
		t.Error("with the same plan there is another spawner")
	}
	must(t, p.Close())
	p = provider(t, cfg)
	s, same = attach(t, p, s.ID()), attach(t, p, same.ID())
	local.GiveUpProc(p, &fence.Fault{Step: "mount /proc: operation not permitted", Errno: unix.EPERM})
	trial := try(t, s)
	sh(t, s, "rm one; echo two > two")
	must(t, trial.Commit(t.Context()))
	forker, _ := cove.As[cove.Forker](s)
	f, err := forker.Fork(t.Context(), cove.NewID(), boxSpec)
	must(t, err)
	if local.MakerPID(f) == maker {
		t.Error("with another plan there is the same spawner")
	}
	if got := sh(t, f, "echo three > three; ls; cat two"); got != "three\ntwo\ntwo\n" {
		t.Errorf("the fork has %q", got)
	}
	for _, s := range []cove.Sandbox{f, s, same} {
		must(t, s.Destroy(t.Context()))
	}
	over(t, p, cfg.Dir)
	ends(t, "the old spawner ends", func() bool { return gone(maker) })
}

func TestWorkspaceOf(t *testing.T) {
	for line, want := range map[string]string{
		"47 112 0:41 /0 /workspace rw,nosuid - tmpfs none rw,size=512000k":                  "0",
		"133 112 0:48 / /workspace rw,nosuid - overlay 12 rw,lowerdir=self/fd/12,uuid=null": "12",
		"133 112 0:48 / /workspace/deeper rw,nosuid - overlay 12 rw,lowerdir=self/fd/12":    "-",
		"133 112 0:48 / /tmp rw shared:1 - tmpfs none rw":                                   "-",
	} {
		got, ok := local.WorkspaceOf(line)
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%q is %q", line, got)
		}
	}
}
