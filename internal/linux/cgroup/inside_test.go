package cgroup_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

// inside opens a manager from a process that is in group g.
func inside(t *testing.T, g *cgroup.Group, user bool, cfg cgroup.Config, controllers ...string) found {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out, errs strings.Builder
	child := linuxtest.Child{Name: "open", Args: append([]string{string(text)}, controllers...), Stdin: r, User: user}
	cmd := linuxtest.Start(t, child, &out, &errs)
	// The ordinary user is a child of the process that we started; it is forked
	// from there into the same groups.
	if err := g.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	_, _ = w.WriteString("x")
	_ = w.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	var f found
	if err := json.Unmarshal([]byte(out.String()), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLimitsOnUsHold puts a limit on a process: its groups go below it.
func TestLimitsOnUsHold(t *testing.T) {
	m := manager(t, 1)
	for _, c := range []struct {
		name, controller string
		limits           cgroup.Limits
	}{
		{"memory", "memory", cgroup.Limits{Memory: 1 << 30}},
		{"cpu", "cpu", cgroup.Limits{CPUs: 1}},
		{"pids", "pids", cgroup.Limits{PIDs: 1000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := group(t, m, c.name)
			if err := g.Set(c.limits); err != nil {
				t.Skip(err)
			}
			f := inside(t, g, false, cgroup.Config{Name: prefix + "inner", Only: 1}, "memory", "cpu", "pids")
			for controller, dir := range f.Dirs {
				if below := strings.HasPrefix(dir, g.Dirs()[controller]+"/"); below != (controller == c.controller) {
					t.Errorf("with a limit on %s, groups for %s go to %s", c.controller, controller, dir)
				}
			}
		})
	}
}

// TestDelegation gives a group of version 2 to a user, as systemd does, with
// the one controller that is left for it on hosts with version 1.
func TestDelegation(t *testing.T) {
	m := manager(t, 2)
	controllers, err := os.ReadFile(filepath.Join(m.Dirs()["v2"], "../cgroup.controllers"))
	if err != nil || len(strings.Fields(string(controllers))) == 0 {
		t.Skip("version 2 has no controllers here")
	}
	controller := strings.Fields(string(controllers))[0]
	linuxtest.Users(t, func(t *testing.T, user bool) {
		with, err := cgroup.OpenWanting(cgroup.Config{Name: name(t), Only: 2}, []string{controller})
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = with.Close() })
		g := group(t, with, "service")
		dir := g.Dirs()["v2"]
		if user {
			for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
				if err := os.Chown(filepath.Join(dir, file), 65534, 65534); err != nil {
					linuxtest.Need(t, err) // nobody is not in this user namespace
				}
			}
		}
		f := inside(t, g, user, cgroup.Config{Name: "mine", Only: 2}, controller)
		if want := dir + "/mine"; f.Dirs["v2"] != want || f.Dirs[controller] != want {
			t.Errorf("groups go to %v, want %s", f.Dirs, want)
		}
		if !user && !strings.Contains(f.Self, "/service/mine-self\n") {
			t.Errorf("the process did not make room: %s", f.Self)
		}
	})
}

func TestOrdinaryUser(t *testing.T) {
	if _, err := os.Stat("/sys/fs/cgroup"); err != nil {
		t.Skip(err)
	}
	linuxtest.NeedRoot(t) // somebody else may have groups delegated to him
	linuxtest.OK(t, linuxtest.Child{Name: "refused", User: true})
}
