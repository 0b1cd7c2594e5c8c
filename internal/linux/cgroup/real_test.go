package cgroup_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

func each(t *testing.T, test func(t *testing.T, m *cgroup.Manager, only int)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) { test(t, manager(t, kind.only), kind.only) })
	}
}

func TestMemoryLimit(t *testing.T) {
	each(t, func(t *testing.T, m *cgroup.Manager, only int) {
		needLimit(t, only, m.Support().Memory)
		needLimit(t, only, m.Support().Swap)
		const limit = 64 << 20
		g := group(t, m, "g")
		// Down, up and down again: memory and its sum with swap move in order.
		for _, n := range []int64{256 << 20, 512 << 20, limit} {
			if err := g.Set(cgroup.Limits{Memory: n}); err != nil {
				t.Fatal(err)
			}
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var out strings.Builder
		cmd := linuxtest.Start(t, linuxtest.Child{Name: "eat", Stdin: r}, &out, &out)
		if err := g.Add(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		_, _ = w.WriteString("x")
		_ = w.Close()
		_ = cmd.Wait()
		if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != unix.SIGKILL {
			t.Errorf("it ended with %s: %s", cmd.ProcessState, &out)
		}
		u, err := g.Usage()
		if err != nil || u.OOMKills < 1 || u.PeakMemory < limit/2 || u.PeakMemory > limit+limit/16 {
			t.Errorf("usage %+v %v", u, err)
		}
	})
}

func TestPIDsLimit(t *testing.T) {
	each(t, func(t *testing.T, m *cgroup.Manager, only int) {
		needLimit(t, only, m.Support().PIDs)
		g := group(t, m, "g")
		if err := g.Set(cgroup.Limits{PIDs: 5}); err != nil {
			t.Fatal(err)
		}
		sh := join(t, g, `i=0; while [ $i -lt 10 ]; do sleep 1000 >/dev/null & i=$((i+1)); done; echo all`)
		out, _ := io.ReadAll(io.LimitReader(sh.stdout, 3))
		if strings.Contains(string(out), "all") {
			t.Error("ten processes were forked under a limit of five")
		}
		if u, err := g.Usage(); err != nil || u.PIDs < 1 || u.PIDs > 5 {
			t.Errorf("usage %+v %v", u, err)
		}
	})
}

func TestCPULimit(t *testing.T) {
	each(t, func(t *testing.T, m *cgroup.Manager, only int) {
		needLimit(t, only, m.Support().CPU)
		g := group(t, m, "g")
		if err := g.Set(cgroup.Limits{CPUs: 0.01}); err != nil {
			t.Fatal(err)
		}
		join(t, g, `while :; do :; done`)
		for throttled := int64(0); throttled < 3; {
			text, err := os.ReadFile(g.Dirs()["cpu"] + "/cpu.stat")
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(text), "nr_throttled ")
			number, _, _ := strings.Cut(rest, "\n")
			if throttled, err = strconv.ParseInt(number, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		if u, err := g.Usage(); err != nil || u.CPU <= 0 {
			t.Errorf("usage %+v %v", u, err)
		}
	})
}

func TestFreeze(t *testing.T) {
	each(t, func(t *testing.T, m *cgroup.Manager, only int) {
		needLimit(t, only, m.Support().Freeze)
		g := group(t, m, "g")
		sh := join(t, g, `while read -r x; do echo "$x"; done`)
		sh.say(t, "one")
		sh.hear(t, "one\n")
		for range 3 {
			if err := g.Freeze(t.Context()); err != nil {
				t.Fatal(err)
			}
			if alone, err := g.Alone(); !alone || err != nil || !g.Still() {
				t.Errorf("one that is frozen: alone %v %v, still %v", alone, err, g.Still())
			}
			sh.say(t, "two")
			if answered(t, sh, 50) {
				t.Error("a frozen process answers")
			}
			if err := g.Thaw(t.Context()); err != nil {
				t.Fatal(err)
			}
			sh.hear(t, "two\n")
			if g.Still() {
				t.Error("it is frozen still")
			}
		}
		if err := g.Freeze(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := g.Kill(t.Context()); err != nil {
			t.Errorf("killing the frozen: %v", err)
		}
		if s := sh.signal(t); s != unix.SIGKILL {
			t.Errorf("it died of %s", s)
		}
	})
}

// answered reports whether the member writes something within so many
// milliseconds.
func answered(t *testing.T, m *member, ms int) bool {
	t.Helper()
	f, ok := m.stdout.(*os.File)
	if !ok {
		t.Fatal("the output is no file")
	}
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := conn.Control(func(fd uintptr) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, ms)
	}); err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// runaway leaves its session, doubles, and never stops forking.
const runaway = `setsid sleep 1000 & (setsid sh -c 'trap "" TERM; while :; do /bin/true; done' &) ; sh -c 'kill -STOP $$' & echo up; while :; do /bin/true; done`

func TestKill(t *testing.T) {
	for way, kill := range map[string]func(context.Context, *cgroup.Group) error{
		"kill": func(ctx context.Context, g *cgroup.Group) error { return g.Kill(ctx) },
		"hunt": huntDown,
	} {
		t.Run(way, func(t *testing.T) {
			each(t, func(t *testing.T, m *cgroup.Manager, _ int) {
				g := group(t, m, "g")
				sh := join(t, g, runaway)
				sh.hear(t, "up\n")
				if empty, err := g.Empty(); empty || err != nil {
					t.Errorf("empty %v %v", empty, err)
				}
				if err := kill(t.Context(), g); err != nil {
					t.Fatal(err)
				}
				if s := sh.signal(t); s != unix.SIGKILL {
					t.Errorf("it died of %s", s)
				}
				if empty, err := g.Empty(); !empty || err != nil {
					t.Errorf("empty %v %v", empty, err)
				}
				if err := errors.Join(g.Kill(t.Context()), g.Remove(t.Context()), g.Remove(t.Context()), g.Kill(t.Context())); err != nil {
					t.Errorf("again: %v", err)
				}
			})
		})
	}
}

// huntDown kills as kernels without cgroup.kill need it.
func huntDown(ctx context.Context, g *cgroup.Group) error {
	for {
		if err := cgroup.Hunt(g, ctx); err != nil {
			return err
		}
		if empty, err := g.Empty(); empty || err != nil {
			return err
		}
	}
}

func TestStartInside(t *testing.T) {
	each(t, func(t *testing.T, m *cgroup.Manager, _ int) {
		g := group(t, m, "g")
		fd, ok := g.FD()
		if ok != (m.Dirs()["v2"] != "") {
			t.Fatalf("descriptor %d %v", fd, ok)
		}
		if !ok {
			t.Skip("no version 2 in this manager")
		}
		if again, _ := g.FD(); again != fd {
			t.Errorf("another descriptor, %d after %d", again, fd)
		}
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Wait() }()
		if err := g.Join(cmd.Process.Pid); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cgroup")
		if err != nil || strings.Count(string(text), "/"+name(t)+"/g\n") != len(unique(g.Dirs())) {
			t.Errorf("it is in %s, want it in %v", text, g.Dirs())
		}
		if err := g.Kill(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func unique(dirs map[string]string) map[string]bool {
	all := map[string]bool{}
	for _, d := range dirs {
		all[d] = true
	}
	return all
}

func TestLeftovers(t *testing.T) {
	each(t, func(t *testing.T, m *cgroup.Manager, only int) {
		g := group(t, m, "left")
		sh := join(t, g, `echo up; read -r x`)
		sh.hear(t, "up\n")
		// Another process comes, knows the name only, and finds it.
		again, err := cgroup.Open(cgroup.Config{Name: name(t), Only: only})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Create("left"); !errors.Is(err, os.ErrExist) {
			t.Errorf("a name that is taken: %v", err)
		}
		// A half-made group has a directory in one hierarchy only.
		for _, dir := range m.Dirs() {
			if err := os.Mkdir(dir+"/half", 0o755); err != nil {
				t.Fatal(err)
			}
			break
		}
		names, err := again.List()
		if err != nil || len(names) != 2 || !contains(names, "left") || !contains(names, "half") {
			t.Fatalf("leftovers %v %v", names, err)
		}
		for _, n := range names {
			g, err := again.Group(n)
			if err != nil {
				t.Fatal(err)
			}
			// A group within the group does not keep it alive.
			for _, dir := range g.Dirs() {
				if err := os.MkdirAll(dir+"/a/b", 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(g.Kill(t.Context()), g.Remove(t.Context())); err != nil {
				t.Error(err)
			}
			if g.Name() != n {
				t.Errorf("%s is named %s", n, g.Name())
			}
		}
		if _, err := again.Group("left"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a group that is gone: %v", err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestRemoveBusy(t *testing.T) {
	each(t, func(t *testing.T, m *cgroup.Manager, _ int) {
		g := group(t, m, "g")
		sh := join(t, g, `echo up; read -r x`)
		sh.hear(t, "up\n")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Remove(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("removing a group with a process in it: %v", err)
		}
		if err := m.Close(); err != nil {
			t.Errorf("closing a manager with a group: %v", err)
		}
		if empty, err := g.Empty(); empty || err != nil {
			t.Errorf("empty %v %v", empty, err)
		}
	})
}

func TestManyGroups(t *testing.T) {
	m := manager(t, 0)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 4 {
				g, err := m.Create("g" + strconv.Itoa(i) + "-" + strconv.Itoa(j))
				if err != nil {
					t.Error(err)
					return
				}
				end(t, g)
			}
		})
	}
	wg.Wait()
	if names, err := m.List(); err != nil || len(names) != 0 {
		t.Errorf("left: %v %v", names, err)
	}
}

func TestBadValues(t *testing.T) {
	m := manager(t, 0)
	g := group(t, m, "g")
	for _, l := range []cgroup.Limits{{Memory: -1}, {PIDs: -1}, {CPUs: -1}, {CPUs: 1 << 30}} {
		if err := g.Set(l); err == nil {
			t.Errorf("%+v were set", l)
		}
	}
	if err := g.Set(cgroup.Limits{}); err != nil {
		t.Errorf("no limits: %v", err)
	}
	for _, n := range []string{"", ".", "..", "a/b", "cgroup.procs", strings.Repeat("x", 101), "ü"} {
		if _, err := m.Create(n); err == nil {
			t.Errorf("a group %q was made", n)
		}
		if _, err := m.Group(n); err == nil {
			t.Errorf("a group %q was found", n)
		}
		if _, err := cgroup.Open(cgroup.Config{Name: n}); err == nil {
			t.Errorf("a manager %q was opened", n)
		}
	}
	for _, pid := range []int{0, -1} {
		if err := g.Add(pid); err == nil {
			t.Errorf("process %d was added", pid)
		}
	}
	if err := g.Add(1<<22 + 1); !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) {
		t.Errorf("a process that is not there: %v", err)
	}
}

func TestUnsupportedLimit(t *testing.T) {
	m := manager(t, 2)
	g := group(t, m, "g")
	for _, c := range []struct {
		support error
		limits  cgroup.Limits
	}{
		{m.Support().Memory, cgroup.Limits{Memory: 1 << 30}},
		{m.Support().CPU, cgroup.Limits{CPUs: 1}},
		{m.Support().PIDs, cgroup.Limits{PIDs: 100}},
	} {
		if err := g.Set(c.limits); (err == nil) != (c.support == nil) || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%+v: %v, support %v", c.limits, err, c.support)
		}
	}
}
