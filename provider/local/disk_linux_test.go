package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// onDisk is a provider that has workspaces on disk only.
type onDisk struct{ cove.Provider }

func (p onDisk) Unwrap() cove.Provider { return p.Provider }

func (p onDisk) Probe(ctx context.Context) (cove.Capabilities, error) {
	c, err := p.Provider.Probe(ctx)
	if q, ok := c.Workspaces[cove.WorkspaceDisk]; ok && err == nil {
		c.Workspaces = map[cove.WorkspaceKind]cove.Quota{cove.WorkspaceDisk: q}
	}
	return c, err
}

// TestConformanceDisk is the suite with workspaces on disk.
func TestConformanceDisk(t *testing.T) {
	providertest.Run(t, func(t *testing.T) cove.Provider { return onDisk{open(t)} },
		tier.Pick([]string{"limits", "leaks"}, "spec", "archive", "limits", "usage", "prepare", "leaks", "pause")...)
}

// small asks for a workspace on disk.
func small(size cove.Bytes, files int64) cove.Spec {
	return cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceDisk, Size: size, Files: files}}
}

// TestDiskExact: not a block and not a file more or less, whatever the size.
func TestDiskExact(t *testing.T) {
	linuxtest.NeedRoot(t)
	p := provider(t, config(t.TempDir()))
	for _, c := range []struct {
		size  cove.Bytes
		files int64
	}{{64 * cove.KiB, 1}, {cove.MiB + 1, 16}, {300 * cove.MiB, 5000}} {
		s, err := p.Create(t.Context(), cove.NewID(), small(c.size, c.files))
		must(t, err)
		blocks := int64(c.size+4095) / 4096
		prints(t, s, map[string]string{
			"stat -f -c '%a %d' /workspace; ls -A /workspace; stat -c '%u %a' /workspace": fmt.Sprintf("%d %d\n1000 755\n", blocks, c.files),
		})
		if c.files < 100 {
			prints(t, s, map[string]string{
				"i=0; while (: > f$i) 2> /dev/null; do i=$((i + 1)); done; rm f*; echo $i": fmt.Sprintln(c.files),
			})
			prints(t, s, map[string]string{
				fmt.Sprintf("dd if=/dev/zero of=f bs=4096 count=%d 2> /dev/null && echo all; (echo x >> f) 2> /dev/null || echo full; rm f", blocks): "all\nfull\n",
			})
		}
		u, err := s.Usage(t.Context())
		must(t, err)
		if u.Disk != 0 || u.Files != 0 {
			t.Errorf("an empty workspace has %+v", u)
		}
		must(t, s.Destroy(t.Context()))
	}
}

// nothingOf demands that no workspace is on disk, and none is mounted.
func nothingOf(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "disks"))
	if err != nil || len(entries) != 0 {
		t.Errorf("on disk are %v, %v", entries, err)
	}
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range files {
		if text, _ := os.ReadFile(f); strings.HasPrefix(string(text), dir+"/") {
			t.Errorf("%s is %s", f, text)
		}
	}
}

func TestDiskCrash(t *testing.T) {
	cfg := config(t.TempDir())
	p := provider(t, cfg)
	must(t, p.Close())
	l := crashedNow(t, cfg.Dir, "disk", true)
	p = provider(t, cfg)
	slices.Sort(l.IDs)
	if got := ids(t, p); !cmp.Equal(l.IDs, got) {
		t.Errorf("listed are %v, left were %v", got, l.IDs)
	}
	_, err := p.Create(t.Context(), l.IDs[0], small(cove.MiB, 16))
	wants(t, cove.Conflict, err, "create")
	for _, id := range l.IDs {
		must(t, p.Remove(t.Context(), id))
		must(t, p.Remove(t.Context(), id))
	}
	if got := ids(t, p); len(got) != 0 {
		t.Errorf("listed are %v", got)
	}
	nothingOf(t, cfg.Dir)
}

func TestDiskGone(t *testing.T) {
	cfg := config(t.TempDir())
	p := provider(t, cfg)
	for _, end := range []func(cove.Sandbox){
		func(s cove.Sandbox) { must(t, s.Destroy(t.Context())) },
		func(s cove.Sandbox) { must(t, p.Remove(t.Context(), s.ID())) },
		func(s cove.Sandbox) {
			must(t, unix.Kill(local.PID(s), unix.SIGKILL))
			must(t, s.Destroy(t.Context()))
		},
	} {
		s, err := p.Create(t.Context(), cove.NewID(), small(cove.MiB, 64))
		must(t, err)
		says(t, s)
		// Whatever is in it: directories that nobody may enter, and many in one another.
		output(t, s, "mkdir -p a/b/c d; chmod 0 a/b; chmod 0 d; ln -s / away; i=0; while [ $i -lt 20 ]; do mkdir "+strings.Repeat("x", 250)+" && cd x*; i=$((i + 1)); done; chmod 0 .")
		end(s)
		nothingOf(t, cfg.Dir)
	}
	spare, err := p.Prepare(t.Context(), cove.Mold{Template: local.Base, Workspace: cove.WorkspaceDisk})
	must(t, err)
	s, err := spare.Claim(t.Context(), cove.NewID(), small(cove.MiB, 64))
	must(t, err)
	says(t, s)
	_, err = spare.Claim(t.Context(), cove.NewID(), small(cove.MiB, 64))
	wants(t, cove.Conflict, err, "claim")
	spare, err = p.Prepare(t.Context(), cove.Mold{Template: local.Base, Workspace: cove.WorkspaceDisk})
	must(t, err)
	_, err = spare.Claim(t.Context(), cove.NewID(), cove.Spec{})
	wants(t, cove.Invalid, err, "claim")
	must(t, spare.Discard(t.Context()))
	must(t, p.Close())
	nothingOf(t, cfg.Dir)
}

// TestDiskFull: a workspace that would not have its bytes is not made.
func TestDiskFull(t *testing.T) {
	linuxtest.NeedRoot(t)
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"))
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	p := provider(t, config(dir))
	_, err := p.Create(t.Context(), cove.NewID(), small(64*cove.MiB, 16))
	wants(t, cove.Exhausted, err, "create")
	if cove.ReasonOf(err) != cove.ReasonCapacity {
		t.Errorf("the reason is %q: %v", cove.ReasonOf(err), err)
	}
	s, err := p.Create(t.Context(), cove.NewID(), small(cove.MiB, 16))
	must(t, err)
	says(t, s)
	for i := range 20 { // sizes of all kinds do not pile up
		s, err := p.Create(t.Context(), cove.NewID(), small(cove.MiB+cove.Bytes(i)*4096, 16))
		must(t, err)
		must(t, s.Destroy(t.Context()))
	}
	if molds, err := os.ReadDir(filepath.Join(dir, "molds")); err != nil || len(molds) > 16 {
		t.Errorf("%d molds, %v", len(molds), err)
	}
	must(t, s.Destroy(t.Context()))
	nothingOf(t, dir)
	must(t, p.Close())
}

// TestDiskImages take no more of the disk than the engine counts for them.
func TestDiskImages(t *testing.T) {
	linuxtest.NeedRoot(t)
	cfg := config(t.TempDir())
	p := provider(t, cfg)
	for _, c := range []struct {
		size  cove.Bytes
		files int64
	}{{64 * cove.KiB, 1}, {cove.MiB, 100_000}, {cove.MiB, 1 << 20}, {300 * cove.MiB, 5000}} {
		s, err := p.Create(t.Context(), cove.NewID(), small(c.size, c.files))
		must(t, err)
		info, err := os.Stat(filepath.Join(cfg.Dir, "disks", string(s.ID())))
		must(t, err)
		n := c.size + cove.Bytes(c.files)*256
		if most := n + n/32 + 4*cove.MiB; cove.Bytes(info.Size()) > most {
			t.Errorf("%s and %d files take %d bytes, which count as %d", c.size, c.files, info.Size(), most)
		}
		must(t, s.Destroy(t.Context()))
	}
}

// TestDiskReserve: a workspace that would take what is left for the journal is not made,
// whether that is for its files or for their number.
func TestDiskReserve(t *testing.T) {
	linuxtest.NeedRoot(t)
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	cfg := config(dir)
	cfg.Reserve = 32 * cove.MiB
	p := provider(t, cfg)
	for _, spec := range []cove.Spec{small(40*cove.MiB, 16), small(cove.MiB, 160_000)} {
		_, err := p.Create(t.Context(), cove.NewID(), spec)
		wants(t, cove.Exhausted, err, "create")
		if cove.ReasonOf(err) != cove.ReasonDiskReserve || cove.RemedyOf(err) == "" {
			t.Errorf("the reason is %q: %v", cove.ReasonOf(err), err)
		}
		nothingOf(t, dir)
	}
	s, err := p.Create(t.Context(), cove.NewID(), small(16*cove.MiB, 16))
	must(t, err)
	says(t, s)
	must(t, s.Destroy(t.Context()))
	must(t, p.Close())
}

// TestRemoveTree: what a sandbox of an ordinary user can leave.
func TestRemoveTree(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	must(t, os.MkdirAll(top+"/a/b/c", 0o700))
	must(t, os.Mkdir(top+"/.1", 0o700)) // a name that is wanted
	must(t, os.Symlink(t.TempDir(), top+"/a/link"))
	fd, err := unix.Open(top+"/a", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range 300 { // deeper than a path can say
		name := strings.Repeat("d", 200)
		must(t, unix.Mkdirat(fd, name, 0o700))
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		must(t, unix.Fchmod(fd, 0o100))
		must(t, unix.Close(fd))
		fd = next
	}
	must(t, unix.Close(fd))
	for i := range 1500 {
		must(t, os.WriteFile(fmt.Sprintf("%s/f%d", top, i), nil, 0))
	}
	must(t, os.Chmod(top+"/a", 0))
	must(t, local.RemoveTree(top))
	must(t, local.RemoveTree(top))
	if _, err := os.Lstat(top); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}
