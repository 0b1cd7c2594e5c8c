package rootfs_test

import (
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
)

// TestTag: a second name stays with the files that it was given for.
func TestTag(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "templates")
	s := openStore(t, rootfs.Config{Dir: dir, Top: hostTop(t, map[string]string{"usr/bin/python3": ""})})
	first := build(t, s, rootfs.Manifest{Name: "web", Kind: rootfs.KindTree}, entry{'f', "x", "one", 0})
	made, err := s.Tag(t.Context(), "web", "web.v1")
	if err != nil || made.Name != "web.v1" || made.Digest != first.Digest {
		t.Fatalf("it gave %+v, %v", made, err)
	}
	second := build(t, s, rootfs.Manifest{Name: "web", Kind: rootfs.KindTree}, entry{'f', "x", "two", 0})
	if e, err := s.Look("web.v1"); err != nil || e.Digest != first.Digest || first.Digest == second.Digest {
		t.Errorf("the name stands for %+v, %v", e, err)
	}
	if _, err := s.Remove(t.Context(), "web.v1"); err != nil || count(t, filepath.Join(dir, "trees")) != 1 {
		t.Errorf("files that have no name are still there: %v", err)
	}
	for _, c := range []struct {
		name, as string
		want     cove.Code
	}{
		{"none", "x", cove.NotFound}, {"A", "x", cove.Invalid}, {"web", "A", cove.Invalid}, {"web", rootfs.Base, cove.Invalid}, {rootfs.Base, "x", cove.Conflict},
	} {
		if _, err := s.Tag(t.Context(), c.name, c.as); cove.CodeOf(err) != c.want {
			t.Errorf("%s as %s gave %v, want %s", c.name, c.as, err, c.want)
		}
	}
}
