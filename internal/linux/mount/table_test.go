package mount_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/mount"
)

func TestParse(t *testing.T) {
	const text = `22 27 0:21 / /proc rw,relatime - proc proc rw
35 31 0:32 /sub\040dir /mnt/a\011b\134 ro,nosuid,nodev,noexec shared:7 master:2 - fuse.x a\040b ro,size=4k
36 31 0:32 / /x\9\0 rw - tmpfs  rw
`
	want := []mount.Mount{
		{ID: 22, Parent: 27, Root: "/", Point: "/proc", Options: []string{"rw", "relatime"}, Type: "proc", Source: "proc", SuperOptions: []string{"rw"}},
		{ID: 35, Parent: 31, Root: "/sub dir", Point: "/mnt/a\tb\\", Options: []string{"ro", "nosuid", "nodev", "noexec"}, Type: "fuse.x", Source: "a b", SuperOptions: []string{"ro", "size=4k"}},
		{ID: 36, Parent: 31, Root: "/", Point: `/x\9\0`, Options: []string{"rw"}, Type: "tmpfs", Source: "", SuperOptions: []string{"rw"}},
	}
	got, err := mount.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	all := mount.ReadOnly | mount.NoSetuid | mount.NoDevices | mount.NoExecute
	if got[0].Flags() != 0 || got[1].Flags() != all {
		t.Errorf("flags %b and %b", got[0].Flags(), got[1].Flags())
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{
		"22 27 0:21 / /proc rw,relatime proc proc rw\n", "x 27 0:21 / / rw - a b rw\n", "22 x 0:21 / / rw - a b rw\n", "22 27 0:21 / / rw - a\n", "\n",
		strings.Repeat("x", 1<<17),
	} {
		if got, err := mount.Parse(strings.NewReader(text)); err == nil {
			t.Errorf("%.40q was read as %v", text, got)
		}
	}
	line := "22 27 0:21 / /proc rw - proc proc rw\n"
	if _, err := mount.Parse(strings.NewReader(strings.Repeat(line, 200_001))); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a table without end: %v", err)
	}
}

func TestTable(t *testing.T) {
	table, err := mount.Table()
	if err != nil || len(table) == 0 {
		t.Fatalf("%d mounts: %v", len(table), err)
	}
}

func TestProbe(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	r := mount.Probe()
	linuxtest.Need(t, r.SetAttr)
	linuxtest.Need(t, r.Descriptors)
}

func FuzzParse(f *testing.F) {
	f.Add(`35 31 0:32 /sub\040dir /mnt ro,nosuid shared:7 - fuse.x a\040b ro,size=4k`)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = mount.Parse(strings.NewReader(text))
	})
}
