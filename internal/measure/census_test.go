package measure_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
)

func TestParseStat(t *testing.T) {
	const rest = " S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2 3"
	for text, want := range map[string]bool{
		"12 (sh)" + rest:            true,
		"12 (a) b (c) S 1 )" + rest: true,
		"12 (sh) S 7 1":             false,
		"12 sh S 7 1 1":             false,
		"":                          false,
		"12 (sh) S x 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2 3": false,
	} {
		parent, began, ok := measure.ParseStat(text)
		if ok != want || ok && (parent != 7 || began != "4711") {
			t.Errorf("%q: %d, %s, %v", text, parent, began, ok)
		}
	}
}

func TestParseMemory(t *testing.T) {
	private, share, err := measure.ParseMemory("5600-7fff ---p 00000000 00:00 0 [rollup]\nRss:    900 kB\nPss:    300 kB\nPss_Anon:    7 kB\nPrivate_Clean:      12 kB\nPrivate_Dirty:     100 kB\nPrivate_Hugetlb:  5 kB\n")
	if err != nil || private != 112*cove.KiB || share != 300*cove.KiB {
		t.Errorf("%d, %d, %v", private, share, err)
	}
	if _, _, err := measure.ParseMemory("Private_Clean: many kB\n"); err == nil {
		t.Error("many is a number")
	}
}

func TestNamespaceNames(t *testing.T) {
	for name, want := range map[string]bool{
		"net:[4026531840]": true, "pid:[4026531836]": true,
		"pipe:[123]": false, "socket:[123]": false, "anon_inode:[eventpoll]": false, "/dev/null": false, "net:[x]": false,
	} {
		if got := measure.IsNamespace(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	name, ok := measure.NamespaceMount("40 22 0:4 net:[4026532412] /run/netns/x rw shared:9 - nsfs nsfs rw\n")
	if !ok || name != "net:[4026532412]" {
		t.Errorf("%s, %v", name, ok)
	}
	if _, ok := measure.NamespaceMount("22 1 0:21 / /proc rw - proc proc rw\n"); ok {
		t.Error("/proc keeps a namespace")
	}
}

func TestCensusSeesWhatIsLeft(t *testing.T) {
	base, err := measure.Count()
	if err != nil {
		t.Fatal(err)
	}
	if base.Processes < 1 || base.Mounts < 1 || base.Namespaces < 1 || base.Descriptors < 1 {
		t.Errorf("the census lacks this process: %+v", base)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.Stdin = r
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	now, err := measure.Count()
	if err != nil {
		t.Fatal(err)
	}
	if more := now.Less(base); more.Processes != 1 || more.Descriptors < 2 || more.Surplus() < 3 {
		t.Errorf("a process and a pipe are %+v", more)
	}
	w.Close()
	r.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	after, err := measure.Settled(t.Context(), base)
	if more := after.Less(base); err != nil || more.Surplus() != 0 {
		t.Errorf("left: %+v, %v", more, err)
	}
}

func TestSurplusIsNotMadeUpFor(t *testing.T) {
	got := measure.Census{Processes: 3, Mounts: 1}.Less(measure.Census{Processes: 1, Mounts: 9})
	if diff := cmp.Diff(measure.Census{Processes: 2, Mounts: -8}, got); diff != "" || got.Surplus() != 2 {
		t.Errorf("%s, surplus %d", diff, got.Surplus())
	}
}

func TestSettledEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure.Settled(ctx, measure.Census{Processes: -1}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestGroupDirs(t *testing.T) {
	const mounts = `20 1 0:1 / / rw - ext4 /dev/root rw
30 20 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro
31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
34 30 0:30 / broken
`
	const membership = "9:pids:/not/mounted\n4:memory:/docker/x/cove-1/a\n3:cpu,cpuacct:/cove-1/a\n0::/cove-1/a\nnonsense\n"
	want := []string{"/sys/fs/cgroup/memory/cove-1/a", "/sys/fs/cgroup/cpu,cpuacct/cove-1/a", "/sys/fs/cgroup/unified/cove-1/a"}
	if diff := cmp.Diff(want, measure.GroupDirs(membership, mounts)); diff != "" {
		t.Error(diff)
	}
	if got := measure.GroupDirs("4:memory:/elsewhere\n", mounts); len(got) != 0 {
		t.Errorf("a group that is not visible is %v", got)
	}
}

func TestCensusCountsGroups(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := measure.Count(dir, filepath.Join(dir, "nothing"))
	if err != nil || c.Cgroups != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}
