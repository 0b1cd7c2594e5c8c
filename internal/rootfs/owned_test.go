package rootfs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
)

// TestOwned: templates of tenants have names of their own, also beside shared ones of the
// same name and of names that look like files.
func TestOwned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "templates")
	s := openStore(t, rootfs.Config{Dir: dir, Top: hostTop(t, map[string]string{"usr/bin/python3": ""})})
	if has, err := s.Has("acme/web"); has || err != nil {
		t.Errorf("a store that is not there has it: %v", err)
	}
	digests := map[string]string{}
	for _, name := range []string{"web", "acme/web", "Bravo.json/web", "web.json/web"} {
		digests[name] = build(t, s, rootfs.Manifest{Name: name, Kind: rootfs.KindTree}, entry{'f', "x", name, 0}).Digest
	}
	for name, digest := range digests {
		if e, err := s.Look(name); err != nil || e.Name != name || e.Digest != digest {
			t.Errorf("%s is %+v, %v", name, e, err)
		}
		if has, err := s.Has(name); !has || err != nil {
			t.Errorf("it has no %s: %v", name, err)
		}
	}
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		if e.Digest != "" {
			names = append(names, e.Name)
		}
	}
	if diff := cmp.Diff([]string{"Bravo.json/web", "acme/web", "web", "web.json/web"}, names); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]cove.Code{
		"acme/python": cove.Conflict, "acme/base": cove.Conflict, "acme/../web": cove.Invalid, "../names/web": cove.Invalid, "acme/": cove.Invalid, "/web": cove.Invalid, "a/b/c": cove.Invalid,
	} {
		if err := rootfs.CheckName(name); cove.CodeOf(err) != want {
			t.Errorf("%s gave %v, want %s", name, err, want)
		}
		if _, err := s.Remove(t.Context(), name); err == nil {
			t.Errorf("%s was removed", name)
		}
	}
	if _, err := s.Remove(t.Context(), "acme/web"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "owned", "acme")); !os.IsNotExist(err) {
		t.Errorf("a tenant without templates has a directory: %v", err)
	}
	for _, name := range []string{"web", "Bravo.json/web"} {
		if e, err := s.Look(name); err != nil || e.Digest != digests[name] {
			t.Errorf("then %s is %+v, %v", name, e, err)
		}
	}
}

// TestOwnedOfAnOlderStore: a store from before tenants had templates has shared ones.
func TestOwnedOfAnOlderStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "templates")
	top := hostTop(t, map[string]string{"usr/bin/python3": ""})
	build(t, openStore(t, rootfs.Config{Dir: dir, Top: top}), rootfs.Manifest{Name: "web", Kind: rootfs.KindTree}, entry{'f', "x", "1", 0})
	if err := os.Remove(filepath.Join(dir, "owned")); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, rootfs.Config{Dir: dir, Top: top})
	if e, err := s.Look("web"); err != nil || !e.Ready {
		t.Errorf("it is %+v, %v", e, err)
	}
	if _, err := s.Tag(t.Context(), "web", "acme/web"); err != nil {
		t.Error(err)
	}
}

// TestOwnedBounds: a tenant has so many templates and no more, and what it replaced
// counts for as long as it is in use.
func TestOwnedBounds(t *testing.T) {
	s := openStore(t, rootfs.Config{Dir: filepath.Join(t.TempDir(), "templates"), Top: hostTop(t, map[string]string{})})
	build(t, s, rootfs.Manifest{Name: "web", Kind: rootfs.KindTree}, entry{'f', "x", "1", 0})
	for i := range rootfs.MostOwned {
		if _, err := s.Tag(t.Context(), "web", fmt.Sprintf("acme/t%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{failed(s.Tag(t.Context(), "web", "acme/more")), s.Room("acme/more")} {
		if cove.CodeOf(err) != cove.Exhausted {
			t.Errorf("one more gave %v", err)
		}
	}
	for _, name := range []string{"acme/t1", "bravo/more", "more"} {
		if _, err := s.Tag(t.Context(), "web", name); err != nil {
			t.Errorf("%s gave %v", name, err)
		}
	}
	if _, err := s.Remove(t.Context(), "acme/t0"); err != nil {
		t.Error(err)
	}
	if err := s.Room("acme/more"); err != nil {
		t.Error(err)
	}
	for i := range rootfs.MostLeft {
		build(t, s, rootfs.Manifest{Name: "acme/t1", Kind: rootfs.KindTree}, entry{'f', "x", fmt.Sprintf("v%d", i), 0})
		if _, _, err := s.Use(t.Context(), "acme/t1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Room("acme/t1"); err != nil {
		t.Errorf("of the trees in use one has a name, and it gave %v", err)
	}
	if _, err := s.Remove(t.Context(), "acme/t1"); err != nil {
		t.Error(err)
	}
	if err := s.Room("acme/t1"); cove.CodeOf(err) != cove.Exhausted {
		t.Errorf("with all trees in use that may be it gave %v", err)
	}
}

// TestOwnedSize: the files of all templates of a tenant have a bound together.
func TestOwnedSize(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "templates")
	s := openStore(t, rootfs.Config{Dir: dir, Top: hostTop(t, map[string]string{})})
	m := build(t, s, rootfs.Manifest{Name: "acme/web", Kind: rootfs.KindTree}, entry{'f', "x", "1", 0})
	claim := fmt.Sprintf(`{"name":"acme/big","kind":"tree","digest":"%s","size":%d}`, m.Digest, rootfs.MostOwnedSize)
	if err := os.WriteFile(filepath.Join(dir, "owned", "acme", "big.json"), []byte(claim), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := failed(s.Tag(t.Context(), "acme/web", "acme/other")); cove.CodeOf(err) != cove.Exhausted {
		t.Errorf("it gave %v", err)
	}
	if _, err := s.Tag(t.Context(), "acme/web", "bravo/other"); err != nil {
		t.Errorf("another tenant got %v", err)
	}
}

func failed[T any](_ T, err error) error { return err }
