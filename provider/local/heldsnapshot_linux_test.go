package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
)

// unsaved makes a snapshot that does not come to the disk, and waits to be killed.
func unsaved(args []string) error {
	ctx := context.Background()
	_, s, err := boxed(ctx, args[0], args[1], "mkdir d; echo one > d/one")
	if err != nil {
		return err
	}
	for _, name := range args[2:] {
		if err := local.SaveCutShort(ctx, s, cove.ID(name)); err != nil {
			return err
		}
		if err := line(ctx, s, "echo later >> d/one"); err != nil {
			return err
		}
	}
	return waitForEnd()
}

func TestSnapshotCutShort(t *testing.T) {
	linuxtest.Need(t, local.Stacking())
	dir := t.TempDir()
	id, first, second, third := cove.NewID(), cove.NewID(), cove.NewID(), cove.NewID()
	killed(t, "unsaved", dir, string(id), string(first), string(second), string(third))
	trees := filepath.Join(dir, "snapshots")
	must(t, os.MkdirAll(filepath.Join(trees, string(second)+".tree"), 0o700)) // as if that one were there
	p := layersKept(t, keeping(dir))
	local.Written(p)
	if _, err := os.Stat(filepath.Join(trees, string(first)+".tree")); err != nil {
		t.Error(err)
	}
	must(t, p.Remove(t.Context(), id))
	for name, want := range map[cove.ID]string{first: "one\n", third: "one\nlater\nlater\n"} {
		spec := boxSpec
		spec.Snapshot = name
		s, err := p.Create(t.Context(), cove.NewID(), spec)
		must(t, err)
		if got := sh(t, s, "cat d/one"); got != want {
			t.Errorf("the snapshot has %q", got)
		}
		must(t, s.Destroy(t.Context()))
	}
	over(t, p, dir)
	p = layersKept(t, keeping(dir))
	spec := boxSpec
	spec.Snapshot = first
	s, err := p.Create(t.Context(), cove.NewID(), spec)
	must(t, err)
	if got := sh(t, s, "cat d/one"); got != "one\n" {
		t.Errorf("on the disk is %q", got)
	}
	must(t, s.Destroy(t.Context()))
	over(t, p, dir)
}

// TestSnapshotUnwritable is about a snapshot that cannot come to the disk: the
// keeper has it until somebody removes it.
func TestSnapshotUnwritable(t *testing.T) {
	cfg := keeping(t.TempDir())
	p := layersKept(t, cfg)
	s, err := p.Create(t.Context(), cove.NewID(), boxSpec)
	must(t, err)
	sh(t, s, "echo one > one")
	removed, kept := cove.NewID(), cove.NewID()
	must(t, os.MkdirAll(filepath.Join(cfg.Dir, "snapshots"), 0o700))
	save(t, s)
	saver, _ := cove.As[cove.Snapshotter](s)
	for _, name := range []cove.ID{removed, kept} {
		must(t, os.Mkdir(filepath.Join(cfg.Dir, "snapshots", string(name)+".draft"), 0o700))
		_, err := saver.Snapshot(t.Context(), name)
		must(t, err)
		if local.FailedSave(p, name) == nil {
			t.Error("it was written")
		}
	}
	keeper, _ := cove.As[cove.SnapshotKeeper](p)
	must(t, keeper.RemoveSnapshot(t.Context(), removed))
	must(t, s.Destroy(t.Context()))
	must(t, p.Close())
	p = layersKept(t, cfg) // which removes what was in the way
	local.Written(p)
	for name, want := range map[cove.ID]bool{removed: false, kept: true} {
		if _, err := os.Stat(filepath.Join(cfg.Dir, "snapshots", string(name)+".tree")); (err == nil) != want {
			t.Errorf("of %s there is %v", name, err)
		}
	}
	over(t, p, cfg.Dir)
}

// TestSnapshotReserve: a snapshot that would go into the reserve stays in memory, and
// comes to the disk when there is room.
func TestSnapshotReserve(t *testing.T) {
	cfg := keeping(t.TempDir())
	cfg.Reserve = cove.Bytes(1) << 62
	p := layersKept(t, cfg)
	s, err := p.Create(t.Context(), cove.NewID(), boxSpec)
	must(t, err)
	sh(t, s, "echo one > one")
	saver, _ := cove.As[cove.Snapshotter](s)
	name := cove.NewID()
	_, err = saver.Snapshot(t.Context(), name)
	must(t, err)
	if err := local.FailedSave(p, name); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the snapshot was written: %v", err)
	}
	tree := filepath.Join(cfg.Dir, "snapshots", string(name)+".tree")
	for _, path := range []string{tree, strings.TrimSuffix(tree, ".tree") + ".draft"} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is %s: %v", path, err)
		}
	}
	must(t, s.Destroy(t.Context()))
	must(t, p.Close())
	cfg.Reserve = 0
	p = layersKept(t, cfg)
	local.Written(p)
	if _, err := os.Stat(tree); err != nil {
		t.Error(err)
	}
	over(t, p, cfg.Dir)
}
