package forkexec_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/capability"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/netns"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// lockUp does to this thread what an agent does to itself.
func lockUp() error {
	if err := errors.Join(ownNamespace(), netns.Loopback(), unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})); err != nil {
		return err
	}
	prog, err := seccomp.Sandbox().Compile()
	if err != nil {
		return err
	}
	if err := capability.Drop(); err != nil {
		return err
	}
	if landlock.Probe() == nil {
		if _, err := landlock.Restrict(landlock.Ruleset{Apart: true, Rules: []landlock.Rule{
			{Path: "/", Allow: landlock.ReadOnly}, {Path: "/dev/null", Allow: landlock.Device}, {Path: "/proc", Allow: landlock.ReadOnly},
		}}); err != nil {
			return err
		}
	}
	return seccomp.Install(prog, false)
}

// locked starts and ends programs from a thread that has no privileges left.
func locked([]string) error {
	runtime.LockOSThread()
	if err := lockUp(); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	pid, err := forkexec.Start(&forkexec.Command{
		Path: "/bin/sh", Argv: []string{"sh", "-c", `setsid sleep 1000 & (sleep 1000 &) ; echo ready; sleep 1000`},
		Env: []string{"PATH=" + os.Getenv("PATH")}, Files: []int{0, int(w.Fd()), 2}, Group: true, Reaper: true,
		Limits: []forkexec.Limit{{Resource: unix.RLIMIT_NOFILE, Soft: 100, Hard: 100}},
	})
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
		return err
	}
	if err := forkexec.KillTree(context.Background(), pid); err != nil {
		return err
	}
	if err := nobodyLeft(); err != nil {
		return err
	}
	if _, err := forkexec.Start(&forkexec.Command{Path: "/nonexistent", Argv: []string{"x"}, Reaper: true}); !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("a program that is not there: %w", err)
	}
	return nil
}

// TestLockedUp shows that all of a sandbox's walls together leave an agent what
// it needs.
func TestLockedUp(t *testing.T) {
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		c := linuxtest.Child{Name: "locked", User: user, Clone: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET}
		if user {
			c.Clone |= unix.CLONE_NEWUSER
		}
		linuxtest.OK(t, c)
	})
}
