//go:build linux

package gvisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/gvisor"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// sentry finds the process that is the kernel of the only sandbox of a directory.
func sentry(t *testing.T, dir string) int {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(text), "runsc-sandbox") || !strings.Contains(string(text), dir) {
			continue
		}
		pid := 0
		for _, d := range filepath.Base(filepath.Dir(path)) {
			pid = 10*pid + int(d-'0')
		}
		return pid
	}
	t.Fatal("there is no sandbox")
	return 0
}

// TestCrashesStayInside: no process of a sandbox on the host, each of which may hold what
// the sandbox holds, has the host write a core file or start its handler for a crash.
func TestCrashesStayInside(t *testing.T) {
	p := closeLater(t, open(t))
	create(t, p, cove.Spec{})
	sentry(t, providertest.Dir(t))
	seen := 0
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(text), "runsc") || !strings.Contains(string(text), providertest.Dir(t)) {
			continue
		}
		limits, err := os.ReadFile(filepath.Join(filepath.Dir(path), "limits"))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(limits)) {
			if f, ok := strings.CutPrefix(line, "Max core file size"); ok {
				if seen++; strings.Join(strings.Fields(f), " ") != "1 1 bytes" {
					t.Errorf("%s: %s", strings.ReplaceAll(string(text), "\x00", " "), line)
				}
			}
		}
	}
	if seen < 2 { // the kernel of the sandbox, and what it has files from
		t.Errorf("%d processes were looked at", seen)
	}
}

// TestSentryKilled: the end of the kernel is the end of the sandbox, which is told,
// and nothing of it is left.
func TestSentryKilled(t *testing.T) {
	p := closeLater(t, open(t))
	s := create(t, p, cove.Spec{})
	run, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(sentry(t, providertest.Dir(t)), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	mortal, _ := cove.As[cove.Mortal](s)
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	select {
	case <-mortal.Died():
	case <-late.C:
		t.Fatal("nobody heard of its end")
	}
	if _, err := run.Wait(t.Context()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a program of it: %v", err)
	}
	if _, err := s.Start(t.Context(), cove.Command{Argv: []string{"true"}}); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("a new program: %v", err)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	empty(t, p)
}

// TestMemoryWall: a sandbox that takes memory faster than its agent looks ends, which
// is told with the reason, and others live on.
func TestMemoryWall(t *testing.T) {
	p := closeLater(t, open(t))
	if caps, err := p.Probe(t.Context()); err != nil || caps.Isolation.Memory != cove.Hard {
		t.Skipf("nothing is behind the agent here: %v", err)
	}
	other := create(t, p, cove.Spec{})
	s := create(t, p, cove.Spec{Resources: cove.Resources{Memory: 64 * cove.MiB}, Workspace: cove.Workspace{Size: cove.MiB}})
	for range 20 {
		run, err := s.Start(t.Context(), cove.Command{Argv: []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=1G", "count=1"}})
		var r cove.Result
		if err == nil {
			r, err = run.Wait(t.Context())
		}
		if err == nil && r.Outcome == cove.OutOfMemory {
			continue // the agent was faster
		}
		if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.MessageOf(err), "memory") || cove.RemedyOf(err) == "" {
			t.Errorf("%+v, %v", r, err)
		}
		break
	}
	if _, text := shell(t, other, "echo alive"); text != "alive" {
		t.Error(text)
	}
}

// empty demands that a provider has nothing.
func empty(t *testing.T, p cove.Provider) {
	t.Helper()
	for id, err := range p.List(t.Context()) {
		t.Errorf("there is %s, %v", id, err)
	}
	left, err := os.ReadDir(filepath.Join(providertest.Dir(t), "bundles"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestKilledWhileNobodyLooked: a sandbox whose kernel ended between two servers is
// gone, and can be removed.
func TestKilledWhileNobodyLooked(t *testing.T) {
	p := open(t)
	s := create(t, p, cove.Spec{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(sentry(t, providertest.Dir(t)), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p = closeLater(t, open(t))
	if _, err := p.Attach(t.Context(), s.ID()); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("attach: %v", err)
	}
	empty(t, p)
}

// TestCheckpointDiskFull: what does not fit on the disk is no snapshot, the sandbox
// goes on, and nothing is left of the try.
func TestCheckpointDiskFull(t *testing.T) {
	linuxtest.NeedRoot(t) // to have a small disk
	p := closeLater(t, open(t))
	s := create(t, p, cove.Spec{})
	saved := filepath.Join(providertest.Dir(t), "snapshots")
	if err := syscall.Mount("tmpfs", saved, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(saved, syscall.MNT_DETACH) })
	snap, _ := cove.As[cove.Snapshotter](s)
	if _, err := snap.Snapshot(t.Context(), cove.NewID()); cove.CodeOf(err) != cove.Exhausted {
		t.Errorf("a snapshot on a full disk: %v", err)
	}
	if left, err := os.ReadDir(saved); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	run, err := s.Start(t.Context(), cove.Command{Argv: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(t.Context()); err != nil || r.ExitCode != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestHalfMade: what a server left that was killed while it made a sandbox is listed,
// cannot be attached, and can be removed; what belongs to nobody goes by itself.
func TestHalfMade(t *testing.T) {
	p := closeLater(t, open(t))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	dir, id := providertest.Dir(t), cove.NewID()
	for path, text := range map[string]string{
		filepath.Join(dir, "boxes", string(id)+".json"): `{"bundle":"` + string(cove.NewID()) + `"}`,
		filepath.Join(dir, "bundles", "nobodys", "log"): "",
		filepath.Join(dir, "snapshots", "new-1", "x"):   "",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p = closeLater(t, open(t))
	found := 0
	for got, err := range p.List(t.Context()) {
		if found++; got != id || err != nil {
			t.Errorf("there is %s, %v", got, err)
		}
	}
	if found != 1 {
		t.Errorf("%d are listed", found)
	}
	if err := p.Remove(t.Context(), id); err != nil {
		t.Error(err)
	}
	empty(t, p)
	if left, err := os.ReadDir(filepath.Join(dir, "snapshots")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestPlatform: a platform that this machine does not have is blamed by its setting.
func TestPlatform(t *testing.T) {
	providertest.Ready(t, closeLater(t, open(t)))
	c := config(t)
	c.Platform, c.Dir = "kvm", filepath.Join(c.Dir, "kvm")
	c.SetPatience(3 * time.Second) // with a /dev/kvm that does not work the runtime never answers
	p, err := gvisor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, p)
	caps, err := p.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if caps.Ready {
		t.Skip("gVisor can use the virtualization of this machine")
	}
	if !strings.HasPrefix(caps.Why, "COVE_GVISOR_PLATFORM is kvm, and gVisor cannot make a sandbox: ") || !strings.HasPrefix(caps.Remedy, "unset COVE_GVISOR_PLATFORM") {
		t.Errorf("%q, and what to do is %q", caps.Why, caps.Remedy)
	}
	for id, err := range p.List(t.Context()) {
		t.Errorf("there is %s, %v", id, err)
	}
}

// TestNotReady: what is missing is said, with what to do.
func TestNotReady(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho no\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*gvisor.Config)
		why    string
	}{
		"no runsc":       {func(c *gvisor.Config) { c.Runsc = "/nowhere/runsc" }, "there is no runsc"},
		"no such runsc":  {func(c *gvisor.Config) { c.Runsc = file }, "is no runsc"},
		"no agent":       {func(c *gvisor.Config) { c.Agent = "/nowhere/agent" }, "cannot be read"},
		"no directory":   {func(c *gvisor.Config) { c.Dir = file }, "cannot be made"},
		"not our gVisor": {func(c *gvisor.Config) { c.SetOwn("/nowhere/gvisor") }, "cannot be looked at"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			test.change(&c)
			p, err := gvisor.New(c)
			if err != nil {
				t.Fatal(err)
			}
			caps, err := p.Probe(t.Context())
			if err != nil || caps.Ready || !strings.Contains(caps.Why, test.why) {
				t.Errorf("%+v, %v", caps, err)
			}
			if _, err := p.Create(t.Context(), cove.NewID(), cove.Spec{}); err == nil {
				t.Error("a sandbox was made")
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if _, err := p.Probe(context.WithoutCancel(t.Context())); cove.CodeOf(err) != cove.Unavailable {
				t.Errorf("after its end: %v", err)
			}
		})
	}
}
