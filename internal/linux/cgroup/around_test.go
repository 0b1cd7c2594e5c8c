package cgroup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

// TestBoundOfAll: groups of two managers have no more together than the directory around
// them, whatever each of them may have.
func TestBoundOfAll(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			linuxtest.NeedRoot(t)
			linuxtest.NoLeaks(t, prefix)
			const most = 96 << 20
			cfg := cgroup.Config{Around: name(t), Only: kind.only, Memory: most}
			var groups []*cgroup.Group
			for _, n := range []string{"one", "two"} {
				cfg.Name = n
				m, err := cgroup.Open(cfg)
				linuxtest.Need(t, err)
				t.Cleanup(func() {
					if err := m.Close(); err != nil {
						t.Error(err)
					}
				})
				needLimit(t, kind.only, m.Support().Memory)
				needLimit(t, kind.only, m.Support().Swap)
				if want := "/" + cfg.Around + "/" + n; !strings.HasSuffix(m.Path(), want) || !strings.HasSuffix(m.Dirs()["memory"], m.Path()) {
					t.Errorf("the groups are in %q and %v, want %q", m.Path(), m.Dirs(), want)
				}
				g := group(t, m, "g")
				if err := g.Set(cgroup.Limits{Memory: 1 << 30}); err != nil {
					t.Fatal(err)
				}
				groups = append(groups, g)
			}
			// One holds more than half, in files, for which no program can be killed.
			dir := t.TempDir()
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			holder := join(t, groups[0], `head -c 50331648 /dev/zero > "$1/held" && echo held; read -r x`, dir)
			holder.hear(t, "held\n")
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var out strings.Builder
			eater := linuxtest.Start(t, linuxtest.Child{Name: "eat", Stdin: r}, &out, &out)
			if err := groups[1].Add(eater.Process.Pid); err != nil {
				t.Fatal(err)
			}
			_, _ = w.WriteString("x")
			_ = w.Close()
			_ = eater.Wait()
			if s, ok := eater.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != unix.SIGKILL {
				t.Errorf("it ended with %s: %s", eater.ProcessState, &out)
			}
			u, err := groups[1].Usage()
			if err != nil || u.PeakMemory > most-(48<<20)+most/16 {
				t.Errorf("beside 48 MiB of another one, it had %d MiB; %v", u.PeakMemory>>20, err)
			}
		})
	}
}

// TestBoundBelowWhatIsUsed: a manager with a bound below what sandboxes of an earlier
// process have in use does not end them.
func TestBoundBelowWhatIsUsed(t *testing.T) {
	l := service(t)
	outer := "cg/system.slice/cove.service/all"
	l.group2(outer, "cpu memory pids")
	l.group2(outer+"/cove", "cpu memory pids")
	for used, want := range map[string]string{"1000\n": "16777216", "67108864\n": "71303168"} {
		l.file(outer+"/memory.current", used)
		l.file(outer+"/memory.max", "max\n")
		if err := os.RemoveAll(filepath.Join(l.root, "cg/system.slice/cove.service/cove")); err != nil {
			t.Fatal(err)
		}
		if _, err := l.open(cgroup.Config{Around: "all", Memory: 16 << 20}); err != nil {
			t.Fatal(err)
		}
		if got := l.text(outer + "/memory.max"); got != want {
			t.Errorf("with %s in use the bound is %s, want %s", strings.TrimSpace(used), got, want)
		}
	}
	for _, dir := range []string{outer, outer + "/cove"} {
		if got := l.text(dir + "/cgroup.subtree_control"); got != "+cpu +memory +pids" {
			t.Errorf("%s hands on %q", dir, got)
		}
	}
}

// TestGroupsOfAnEarlierBuild stay where they are, where the next process finds them, and
// are bounded there.
func TestGroupsOfAnEarlierBuild(t *testing.T) {
	each(t, func(t *testing.T, m *cgroup.Manager, only int) {
		needLimit(t, only, m.Support().Memory)
		g := group(t, m, "old")
		cfg := cgroup.Config{Name: name(t), Around: name(t) + "-around", Only: only, Memory: 64 << 20}
		again, err := cgroup.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Group("old"); err != nil {
			t.Errorf("the group of the earlier build: %v", err)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(m.Dirs()["memory"]), cfg.Around)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory around it: %v", err)
		}
		text, err := os.ReadFile(m.Dirs()["memory"] + "/" + map[bool]string{true: "memory.limit_in_bytes", false: "memory.max"}[exists(m.Dirs()["memory"]+"/memory.limit_in_bytes")])
		if err != nil || strings.TrimSpace(string(text)) != "67108864" {
			t.Errorf("the bound is %q, %v", text, err)
		}
		end(t, g)
		moved, err := cgroup.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(moved.Path(), "/"+cfg.Around+"/"+cfg.Name) {
			t.Errorf("without groups they are in %q", moved.Path())
		}
		if err := moved.Close(); err != nil {
			t.Error(err)
		}
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
