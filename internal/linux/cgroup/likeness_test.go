package cgroup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
)

// likeness is a directory tree that looks like a host with control groups. Its
// files take everything; nothing happens behind them.
type likeness struct {
	t    *testing.T
	root string
}

func newLikeness(t *testing.T, mountinfo, membership string) likeness {
	t.Helper()
	l := likeness{t, t.TempDir()}
	l.file("proc/mountinfo", strings.ReplaceAll(mountinfo, "ROOT", l.root))
	l.file("proc/cgroup", membership)
	return l
}

func (l likeness) file(path, text string) {
	l.t.Helper()
	full := filepath.Join(l.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l likeness) text(path string) string {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.root, path))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// group2 writes the files that every group of version 2 has.
func (l likeness) group2(dir, controllers string) {
	l.file(dir+"/cgroup.controllers", controllers+"\n")
	l.file(dir+"/cgroup.subtree_control", "")
	l.file(dir+"/cgroup.procs", "")
	l.file(dir+"/cgroup.freeze", "0\n")
	l.file(dir+"/cgroup.events", "populated 0\nfrozen 0\n")
	l.file(dir+"/cpu.stat", "usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n")
}

func (l likeness) open(cfg cgroup.Config) (*cgroup.Manager, error) {
	cfg.Name, cfg.Self = "cove", l.root+"/proc"
	return cgroup.Open(cfg)
}

const systemdMounts = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:26 / ROOT/cg rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`

// service is a host with version 2 where systemd delegated a service to us.
func service(t *testing.T) likeness {
	l := newLikeness(t, systemdMounts, "0::/system.slice/cove.service\n")
	l.group2("cg", "cpuset cpu io memory hugetlb pids rdma")
	l.group2("cg/system.slice", "cpu memory pids")
	l.group2("cg/system.slice/cove.service", "cpu memory pids")
	l.group2("cg/system.slice/cove.service/cove", "cpu memory pids")
	return l
}

func TestVersion2(t *testing.T) {
	l := service(t)
	m, err := l.open(cgroup.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if s := m.Support(); s.Memory != nil || s.CPU != nil || s.PIDs != nil || s.Freeze != nil {
		t.Errorf("support %+v", s)
	}
	for _, dir := range []string{"cg/system.slice/cove.service", "cg/system.slice/cove.service/cove"} {
		if got := l.text(dir + "/cgroup.subtree_control"); got != "+cpu +memory +pids" {
			t.Errorf("%s hands on %q", dir, got)
		}
	}
	g, err := m.Create("s1")
	if err != nil {
		t.Fatal(err)
	}
	dir := "cg/system.slice/cove.service/cove/s1"
	l.group2(dir, "cpu memory pids")
	for file, text := range map[string]string{
		"memory.max": "max\n", "memory.swap.max": "max\n", "cpu.max": "max 100000\n", "pids.max": "max\n", "cgroup.kill": "",
		"memory.current": "4096\n", "memory.peak": "8192\n", "memory.events": "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n", "pids.current": "7\n",
	} {
		l.file(dir+"/"+file, text)
	}
	if err := g.Set(cgroup.Limits{Memory: 1 << 30, CPUs: 1.5, PIDs: 64}); err != nil {
		t.Fatal(err)
	}
	if err := g.Add(4242); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory.max": "1073741824", "memory.swap.max": "0", "cpu.max": "150000 100000", "pids.max": "64", "cgroup.procs": "4242"} {
		if got := l.text(dir + "/" + file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	u, err := g.Usage()
	want := cgroup.Usage{CPU: 1500 * time.Millisecond, Memory: 4096, PeakMemory: 8192, PIDs: 7, OOMKills: 2}
	if d := cmp.Diff(want, u); d != "" || err != nil {
		t.Error(err, d)
	}
	if err := g.Thaw(t.Context()); err != nil || l.text(dir+"/cgroup.freeze") != "0" {
		t.Errorf("thaw: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Nothing here ever freezes or dies.
	if err := g.Freeze(ctx); !errors.Is(err, context.Canceled) || l.text(dir+"/cgroup.freeze") != "1" {
		t.Errorf("freeze: %v", err)
	}
	if err := g.Kill(ctx); !errors.Is(err, context.Canceled) || l.text(dir+"/cgroup.kill") != "1" {
		t.Errorf("kill: %v", err)
	}
	if err := g.Set(cgroup.Limits{CPUs: 0.001}); err != nil || l.text(dir+"/cpu.max") != "1000 100000" {
		t.Errorf("the least of a processor: %v, %q", err, l.text(dir+"/cpu.max"))
	}
}

// TestOldVersion2 has no peak of memory, no swap accounting and no numbers that
// make sense.
func TestOldVersion2(t *testing.T) {
	l := service(t)
	m, err := l.open(cgroup.Config{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.Create("s1")
	if err != nil {
		t.Fatal(err)
	}
	dir := "cg/system.slice/cove.service/cove/s1"
	l.file(dir+"/memory.max", "max\n")
	l.file(dir+"/memory.current", "1\n")
	l.file(dir+"/memory.events", "low 0\n")
	l.file(dir+"/pids.current", "1\n")
	if err := g.Set(cgroup.Limits{Memory: 4096}); err != nil {
		t.Error(err)
	}
	if u, err := g.Usage(); err != nil || u != (cgroup.Usage{Memory: 1, PIDs: 1}) {
		t.Errorf("usage %+v %v", u, err)
	}
	l.file(dir+"/memory.current", "many\n")
	if _, err := g.Usage(); err == nil {
		t.Error("nonsense was taken for a number")
	}
	l.file(dir+"/cgroup.procs", "x\n")
	if _, err := g.Empty(); err == nil {
		t.Error("nonsense was taken for a process")
	}
	if err := g.Kill(t.Context()); err == nil {
		t.Error("nonsense was killed")
	}
}

// TestBusyParent has other processes in our own group: the nearest group above
// without any is taken.
func TestBusyParent(t *testing.T) {
	l := service(t)
	// A read-only file stands for a group that somebody else manages.
	own := filepath.Join(l.root, "cg/system.slice/cove.service/cgroup.subtree_control")
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	l.group2("cg/system.slice/cove", "cpu memory pids")
	m, err := l.open(cgroup.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Dirs()["v2"], l.root+"/cg/system.slice/cove"; got != want {
		t.Errorf("groups go to %s, want %s", got, want)
	}
}

func TestFewControllers(t *testing.T) {
	l := newLikeness(t, systemdMounts, "0::/\n")
	l.group2("cg", "memory pids")
	l.group2("cg/cove", "memory pids")
	m, err := l.open(cgroup.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := m.Support()
	if s.Memory != nil || s.PIDs != nil || s.CPU == nil || !strings.Contains(linux.RemedyOf(s.CPU), "Delegate=") {
		t.Errorf("support %+v", s)
	}
}

func TestNothingMounted(t *testing.T) {
	for mountinfo, want := range map[string]string{
		"22 1 254:0 / / rw - ext4 /dev/vda rw\nnonsense\n":                    "mount cgroup2",
		"30 22 0:26 / ROOT/none rw - cgroup2 cgroup2 rw\n":                    "Delegate=yes",
		"30 22 0:26 / ROOT/none rw - cgroup cgroup rw,memory\n":               "Delegate=yes",
		"30 22 0:26 / ROOT/none rw - cgroup cgroup rw,name=systemd,xattr\n":   "mount cgroup2",
		"30 22 0:26 / ROOT/none rw - cgroup cgroup rw,memory\nx - y z rw\n\n": "Delegate=yes",
	} {
		_, err := newLikeness(t, mountinfo, "nonsense\n0::/\n").open(cgroup.Config{})
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(linux.RemedyOf(err), want) {
			t.Errorf("%s: %v, remedy %q", mountinfo, err, linux.RemedyOf(err))
		}
	}
	for _, file := range []string{"mountinfo", "cgroup"} {
		l := newLikeness(t, "", "")
		if err := os.Remove(filepath.Join(l.root, "proc", file)); err != nil {
			t.Fatal(err)
		}
		if _, err := l.open(cgroup.Config{}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without %s: %v", file, err)
		}
	}
}

// TestVersion1 has the paths of a container, where the mount starts at the
// container's own group, and controllers that share a hierarchy.
func TestVersion1(t *testing.T) {
	const mounts = `40 30 0:32 /docker/abc ROOT/cg/memory\040x rw - cgroup cgroup rw,memory
41 30 0:33 /docker/abc ROOT/cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
42 30 0:33 /docker/abc ROOT/cg/again rw - cgroup cgroup rw,cpu,cpuacct
43 30 0:34 /docker/abc ROOT/cg/pids rw - cgroup cgroup rw,pids
44 30 0:35 /docker/abc ROOT/cg/freezer rw - cgroup cgroup rw,freezer
`
	l := newLikeness(t, mounts, "4:memory:/docker/abc/job\n3:cpu,cpuacct:/docker/abc\n2:pids:/../other\n1:freezer:/docker/abc\n")
	l.file("cg/memory x/job/memory.limit_in_bytes", "1073741824\n")
	l.file("cg/memory x/job/cove/memory.use_hierarchy", "0\n")
	l.file("cg/cpu,cpuacct/cpu.cfs_quota_us", "50000\n")
	for _, dir := range []string{"pids", "freezer"} {
		l.file("cg/"+dir+"/tasks", "")
	}
	m, err := l.open(cgroup.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cg := l.root + "/cg/"
	want := map[string]string{"memory": cg + "memory x/job/cove", "cpu": cg + "cpu,cpuacct/cove", "cpuacct": cg + "cpu,cpuacct/cove", "pids": cg + "pids/cove", "freezer": cg + "freezer/cove"}
	if d := cmp.Diff(want, m.Dirs()); d != "" {
		t.Fatal(d)
	}
	if got := l.text("cg/memory x/job/cove/memory.use_hierarchy"); got != "1" {
		t.Errorf("use_hierarchy is %q", got)
	}
	g, err := m.Create("s1")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"memory x/job/cove/s1/memory.limit_in_bytes": "", "cpu,cpuacct/cove/s1/cpu.cfs_period_us": "", "cpu,cpuacct/cove/s1/cpu.cfs_quota_us": "",
		"cpu,cpuacct/cove/s1/cpuacct.usage": "1500\n", "memory x/job/cove/s1/memory.usage_in_bytes": "1\n", "memory x/job/cove/s1/memory.max_usage_in_bytes": "2\n",
		"memory x/job/cove/s1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "freezer/cove/s1/freezer.state": "THAWED\n",
		"pids/cove/s1/cgroup.procs": "11\n12\n0\n", "pids/cove/s1/pids.current": "3\n",
	} {
		l.file("cg/"+file, text)
	}
	if err := g.Set(cgroup.Limits{Memory: 5000, CPUs: 2}); err != nil {
		t.Fatal(err)
	}
	if l.text("cg/memory x/job/cove/s1/memory.limit_in_bytes") != "5000" || l.text("cg/cpu,cpuacct/cove/s1/cpu.cfs_quota_us") != "200000" {
		t.Error("the limits were not written")
	}
	if err := g.Set(cgroup.Limits{PIDs: 3}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a limit without its file: %v", err)
	}
	u, err := g.Usage()
	if d := cmp.Diff(cgroup.Usage{CPU: 1500, Memory: 1, PeakMemory: 2, PIDs: 3, OOMKills: 3}, u); d != "" || err != nil {
		t.Error(err, d)
	}
	if _, ok := g.FD(); ok {
		t.Error("version 1 has a descriptor")
	}
	if err := errors.Join(g.Freeze(t.Context()), g.Thaw(t.Context())); err != nil {
		t.Error(err)
	}
	if empty, err := g.Empty(); empty || err != nil {
		t.Errorf("empty %v %v", empty, err)
	}
	if alone, err := g.Alone(); !alone || err != nil { // that directory has nobody
		t.Errorf("alone %v %v", alone, err)
	}
}

func TestNoFreezer(t *testing.T) {
	l := newLikeness(t, "43 30 0:34 / ROOT/cg/pids rw - cgroup cgroup rw,pids\n", "")
	l.file("cg/pids/tasks", "")
	m, err := l.open(cgroup.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Support().Freeze == nil || m.Support().Swap == nil {
		t.Errorf("support %+v", m.Support())
	}
	g, err := m.Create("s1")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Freeze(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("freeze: %v", err)
	}
	if u, err := g.Usage(); err != nil || u != (cgroup.Usage{}) {
		t.Errorf("usage %+v %v", u, err)
	}
	if err := errors.Join(g.Remove(t.Context()), m.Close()); err != nil {
		t.Error(err)
	}
	if names, err := m.List(); err != nil || names != nil {
		t.Errorf("groups %v %v", names, err)
	}
	if empty, err := g.Empty(); !empty || err != nil {
		t.Errorf("a group that is gone: empty %v %v", empty, err)
	}
}

// TestCreateCleansUp cannot make the last of the group's directories.
func TestCreateCleansUp(t *testing.T) {
	l := newLikeness(t, "42 30 0:34 / ROOT/cg/cpu rw - cgroup cgroup rw,cpu\n43 30 0:34 / ROOT/cg/pids rw - cgroup cgroup rw,pids\n", "")
	l.file("cg/pids/tasks", "")
	l.file("cg/cpu/tasks", "")
	m, err := l.open(cgroup.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(m.Dirs()["pids"]); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create("s1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("create: %v", err)
	}
	if _, err := os.Stat(m.Dirs()["cpu"] + "/s1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a group is left: %v", err)
	}
}

func FuzzMountinfo(f *testing.F) {
	f.Add(systemdMounts, "0::/a/b\n")
	f.Add("42 30 0:34 /../x /m rw - cgroup cgroup rw,cpu\n", "3:cpu:/../../x\n")
	f.Fuzz(func(t *testing.T, mountinfo, membership string) {
		root := t.TempDir()
		for name, text := range map[string]string{"mountinfo": mountinfo, "cgroup": membership} {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range cgroup.OwnDirs(root) {
			if strings.Contains(dir+"/", "/../") {
				t.Errorf("a group at %q", dir)
			}
		}
	})
}
