package rootfs_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
)

// hostTop makes a tree that looks like a host with some files.
func hostTop(t *testing.T, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	files["etc/os-release"] = "ID=debian\nVERSION_ID=\"12\"\n"
	for name, text := range files {
		path := filepath.Join(top, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o755))
	}
	return top
}

func openStore(t *testing.T, cfg rootfs.Config) *rootfs.Store {
	t.Helper()
	s := rootfs.New(cfg)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func build(t *testing.T, s *rootfs.Store, m rootfs.Manifest, entries ...entry) rootfs.Manifest {
	t.Helper()
	st, err := s.Stage()
	must(t, err)
	defer func() { must(t, st.Close()) }()
	u := rootfs.NewUnpacker(st.Tree, rootfs.DefaultBounds)
	must(t, u.Layer(t.Context(), bytes.NewReader(tarOf(t, entries...))))
	m, err = s.Put(t.Context(), st, m)
	must(t, err)
	return m
}

func count(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	return len(entries)
}

func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "templates")
	cfg := rootfs.Config{Dir: dir, Top: hostTop(t, map[string]string{"usr/bin/python3": ""})}
	s := openStore(t, cfg)
	m := build(t, s, rootfs.Manifest{Name: "mine", Kind: rootfs.KindTree, Env: map[string]string{"A": "b"}}, entry{'f', "x", "text", 0}, entry{'l', "y", "/x", 0})
	if m.Files != 1 || m.Size != 4 || len(m.Digest) != 64 || m.Seal == "" || m.Created.IsZero() {
		t.Errorf("got %+v", m)
	}
	again := build(t, s, rootfs.Manifest{Name: "same", Kind: rootfs.KindTree}, entry{'l', "y", "/x", 0}, entry{'f', "x", "text", 0})
	if again.Digest != m.Digest || count(t, filepath.Join(dir, "trees")) != 1 {
		t.Error("the same files are there twice")
	}
	all, err := s.List()
	must(t, err)
	ready := map[string]bool{}
	for _, e := range all {
		ready[e.Name] = e.Ready
		if !e.Ready && (e.Why == "" || e.Remedy != "cove template build "+e.Name) {
			t.Errorf("%s says %q and %q", e.Name, e.Why, e.Remedy)
		}
	}
	if diff := cmp.Diff(map[string]bool{"base": true, "python": true, "node": false, "data": false, "sandbox": false, "mine": true, "same": true}, ready); diff != "" {
		t.Error(diff)
	}
	got, tree, err := s.Use(t.Context(), "mine")
	must(t, err)
	if text, _ := os.ReadFile(filepath.Join(tree, "x")); string(text) != "text" || got.Env["A"] != "b" {
		t.Errorf("the tree has %q, and the environment %v", text, got.Env)
	}
	for name, code := range map[string]cove.Code{"data": cove.Unavailable, "nobody": cove.NotFound, "No/Name": cove.Invalid} {
		if _, _, err := s.Use(t.Context(), name); !errors.Is(err, code) {
			t.Errorf("%s: %v, want %s", name, err, code)
		}
	}
	if _, tree, err := s.Use(t.Context(), "base"); err != nil || tree != "" {
		t.Errorf("base is %q, %v", tree, err)
	}
	if left := count(t, filepath.Join(dir, "staging")); left != 0 {
		t.Errorf("%d things are left in staging", left)
	}
}

func TestPutRefuses(t *testing.T) {
	s := openStore(t, rootfs.Config{Dir: t.TempDir(), Top: t.TempDir()})
	for _, name := range []string{"base", "", "../x", "X", strings.Repeat("x", 64)} {
		st, err := s.Stage()
		must(t, err)
		if _, err := s.Put(t.Context(), st, rootfs.Manifest{Name: name, Kind: rootfs.KindTree}); !errors.Is(err, cove.Invalid) {
			t.Errorf("%q: %v", name, err)
		}
		must(t, st.Close())
	}
}

// What is in use stays, whatever happens to the name; what is not goes with it.
func TestRemove(t *testing.T) {
	dir, top := t.TempDir(), hostTop(t, map[string]string{})
	held := false
	cfg := rootfs.Config{Dir: dir, Top: top, Held: func() bool { return held }}
	server, tool := openStore(t, cfg), openStore(t, cfg)
	trees := filepath.Join(dir, "trees")
	tree := func(name, text string) {
		build(t, tool, rootfs.Manifest{Name: name, Kind: rootfs.KindTree}, entry{'f', "x", text, 0})
	}
	remove := func(s *rootfs.Store, name string, want bool) {
		t.Helper()
		kept, err := s.Remove(t.Context(), name)
		must(t, err)
		if kept != want {
			t.Errorf("kept is %v", kept)
		}
	}

	tree("unused", "1")
	remove(tool, "unused", false)
	if n := count(t, trees); n != 0 {
		t.Fatalf("%d trees are left", n)
	}

	tree("used", "2")
	_, path, err := server.Use(t.Context(), "used")
	must(t, err)
	tree("used", "3") // replaces the name
	if text, _ := os.ReadFile(filepath.Join(path, "x")); string(text) != "2" {
		t.Error("a tree went that is in use")
	}
	remove(tool, "used", false)
	if _, err := tool.Look("used"); !errors.Is(err, cove.NotFound) {
		t.Errorf("it is still there: %v", err)
	}

	held = true // the server ends, its sandboxes live on
	must(t, server.Close())
	next := openStore(t, cfg)
	must(t, next.Inherit(t.Context()))
	held = false // and this server's own lock is what counts now
	tree("other", "4")
	remove(tool, "other", false)
	if text, _ := os.ReadFile(filepath.Join(path, "x")); string(text) != "2" {
		t.Error("a tree went that sandboxes of an earlier server use")
	}
	must(t, next.Close())
	must(t, tool.Inherit(t.Context()))
	if n := count(t, trees); n != 0 {
		t.Errorf("%d trees and marks are left", n)
	}

	for name, code := range map[string]cove.Code{"used": cove.NotFound, "data": cove.Conflict, "..": cove.Invalid} {
		if _, err := tool.Remove(t.Context(), name); !errors.Is(err, code) {
			t.Errorf("%s: %v, want %s", name, err, code)
		}
	}
}

func TestRemoveKept(t *testing.T) {
	cfg := rootfs.Config{Dir: t.TempDir(), Top: t.TempDir()}
	server, tool := openStore(t, cfg), openStore(t, cfg)
	build(t, tool, rootfs.Manifest{Name: "x", Kind: rootfs.KindTree}, entry{'f', "x", "1", 0})
	_, _, err := server.Use(t.Context(), "x")
	must(t, err)
	if kept, err := tool.Remove(t.Context(), "x"); err != nil || !kept {
		t.Errorf("kept is %v, %v", kept, err)
	}
}

// Every change to a file is noticed before the tree is used; a copy of the whole
// store is none.
func TestChecked(t *testing.T) {
	for name, change := range map[string]func(tree string) error{
		"content": func(tree string) error {
			info, err := os.Stat(filepath.Join(tree, "x"))
			return errors.Join(err, os.WriteFile(filepath.Join(tree, "x"), []byte("2"), 0o644), os.Chtimes(filepath.Join(tree, "x"), time.Time{}, info.ModTime()))
		},
		"mode":    func(tree string) error { return os.Chmod(filepath.Join(tree, "x"), 0o4755) },
		"new":     func(tree string) error { return os.WriteFile(filepath.Join(tree, "z"), nil, 0o644) },
		"gone":    func(tree string) error { return os.Remove(filepath.Join(tree, "x")) },
		"no tree": os.RemoveAll,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := rootfs.Config{Dir: t.TempDir(), Top: t.TempDir()}
			m := build(t, openStore(t, cfg), rootfs.Manifest{Name: "t", Kind: rootfs.KindTree}, entry{'f', "x", "1", 0})
			tree := filepath.Join(cfg.Dir, "trees", m.Digest)
			must(t, change(tree))
			s := openStore(t, cfg)
			if _, _, err := s.Use(t.Context(), "t"); !errors.Is(err, cove.Unavailable) || cove.RemedyOf(err) == "" {
				t.Errorf("used: %v", err)
			}
			if _, err := s.Verify(t.Context(), "t"); !errors.Is(err, cove.Unavailable) {
				t.Errorf("verified: %v", err)
			}
			// Another build heals it, unless it is in use.
			must(t, s.Close())
			s = openStore(t, cfg)
			build(t, s, rootfs.Manifest{Name: "t", Kind: rootfs.KindTree}, entry{'f', "x", "1", 0})
			if _, _, err := s.Use(t.Context(), "t"); err != nil {
				t.Errorf("built again: %v", err)
			}
		})
	}
	t.Run("copy", func(t *testing.T) {
		cfg := rootfs.Config{Dir: t.TempDir(), Top: t.TempDir()}
		build(t, openStore(t, cfg), rootfs.Manifest{Name: "t", Kind: rootfs.KindTree}, entry{'f', "x", "1", 0o755}, entry{'d', "d", "", 0})
		moved := filepath.Join(t.TempDir(), "copy")
		must(t, os.CopyFS(moved, os.DirFS(cfg.Dir)))
		s := openStore(t, rootfs.Config{Dir: moved, Top: cfg.Top})
		for range 2 {
			if _, _, err := s.Use(t.Context(), "t"); err != nil {
				t.Error(err)
			}
		}
		if e, err := s.Verify(t.Context(), "t"); err != nil || !e.Ready {
			t.Error(e, err)
		}
	})
}

func TestChangedWhileUsed(t *testing.T) {
	cfg := rootfs.Config{Dir: t.TempDir(), Top: t.TempDir(), Recheck: time.Nanosecond}
	s := openStore(t, cfg)
	m := build(t, s, rootfs.Manifest{Name: "t", Kind: rootfs.KindTree}, entry{'f', "x", "1", 0})
	_, tree, err := s.Use(t.Context(), "t")
	must(t, err)
	_, _, err = s.Use(t.Context(), "t")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(tree, "x"), []byte("2"), 0o644))
	for range 2 {
		if _, _, err := s.Use(t.Context(), "t"); !errors.Is(err, cove.Unavailable) {
			t.Errorf("used again: %v", err)
		}
	}
	other := openStore(t, cfg)
	st, err := other.Stage()
	must(t, err)
	defer func() { _ = st.Close() }()
	must(t, rootfs.NewUnpacker(st.Tree, rootfs.DefaultBounds).Layer(t.Context(), bytes.NewReader(tarOf(t, entry{'f', "x", "1", 0}))))
	if _, err := other.Put(t.Context(), st, rootfs.Manifest{Name: "t", Kind: rootfs.KindTree}); !errors.Is(err, cove.Conflict) {
		t.Errorf("%s was replaced: %v", m.Digest, err)
	}
}

func TestLayerNeedsItsHost(t *testing.T) {
	cfg := rootfs.Config{Dir: t.TempDir(), Top: hostTop(t, map[string]string{})}
	s := openStore(t, cfg)
	build(t, s, rootfs.Manifest{Name: "l", Kind: rootfs.KindLayer}, entry{'f', "usr/bin/x", "1", 0o755})
	if _, _, err := s.Use(t.Context(), "l"); err != nil {
		t.Fatal(err)
	}
	must(t, os.WriteFile(filepath.Join(cfg.Top, "etc/os-release"), []byte("ID=debian\nVERSION_ID=13\n"), 0o644))
	s = openStore(t, cfg)
	if _, _, err := s.Use(t.Context(), "l"); !errors.Is(err, cove.Unavailable) || !strings.Contains(err.Error(), "debian 13") {
		t.Error(err)
	}
}

func TestDamagedManifest(t *testing.T) {
	cfg := rootfs.Config{Dir: t.TempDir(), Top: t.TempDir()}
	s := openStore(t, cfg)
	for _, text := range []string{"", "{}", `{"name":"other","kind":"tree"}`, `{"name":"x","kind":"tree","digest":"../../../../etc"}`} {
		build(t, s, rootfs.Manifest{Name: "x", Kind: rootfs.KindTree}, entry{'f', "x", "1", 0})
		must(t, os.WriteFile(filepath.Join(cfg.Dir, "names/x.json"), []byte(text), 0o600))
		if _, _, err := s.Use(t.Context(), "x"); !errors.Is(err, cove.Unavailable) {
			t.Errorf("%q: %v", text, err)
		}
		list, err := s.List()
		must(t, err)
		i := slices.IndexFunc(list, func(e rootfs.Entry) bool { return e.Name == "x" })
		if len(list) != len(rootfs.Builtin())+1 || i < 0 || list[i].Ready || !strings.Contains(list[i].Remedy, "cove template rm x") {
			t.Errorf("%q: %+v", text, list)
		}
		if _, err := s.Remove(t.Context(), "x"); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A builder that dies leaves something, and the next one removes it; one that
// lives keeps its stage.
func TestStages(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, rootfs.Config{Dir: dir, Top: t.TempDir()})
	live, err := s.Stage()
	must(t, err)
	dead := filepath.Join(dir, "staging", string(cove.NewID()))
	must(t, os.MkdirAll(filepath.Join(dead, "tree/x"), 0o755))
	draft := filepath.Join(dir, "staging", "old.json")
	must(t, os.WriteFile(draft, nil, 0o600))
	must(t, os.Chtimes(draft, time.Time{}, time.Now().Add(-24*time.Hour)))
	next, err := s.Stage()
	must(t, err)
	if _, err := os.Stat(live.Dir); err != nil {
		t.Error("the stage of a living builder went")
	}
	if n := count(t, filepath.Join(dir, "staging")); n != 2 {
		t.Errorf("%d are there, want the two that are alive", n)
	}
	must(t, errors.Join(live.Close(), next.Close()))
}

func TestLockGivesUp(t *testing.T) {
	cfg := rootfs.Config{Dir: t.TempDir(), Top: t.TempDir()}
	s := openStore(t, cfg)
	unlock, err := s.Lock(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := openStore(t, cfg).Remove(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	unlock()
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	s := openStore(t, rootfs.Config{Dir: filepath.Join(file, "x")})
	if _, err := s.Stage(); !errors.Is(err, cove.Unavailable) {
		t.Error(err)
	}
	if _, err := s.List(); !errors.Is(err, cove.Unavailable) {
		t.Error(err)
	}
}

// Whoever only looks leaves nothing behind.
func TestLooking(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "templates")
	s := openStore(t, rootfs.Config{Dir: dir, Top: hostTop(t, map[string]string{})})
	_, err := s.List()
	must(t, errors.Join(err, s.Inherit(t.Context())))
	_, _, err = s.Use(t.Context(), "base")
	must(t, err)
	if _, _, err := s.Use(t.Context(), "nobody"); !errors.Is(err, cove.NotFound) {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", dir, err)
	}
}

// Builders, removers and users at once: every tree that somebody got is whole.
func TestTogether(t *testing.T) {
	cfg := rootfs.Config{Dir: t.TempDir(), Top: t.TempDir()}
	var all sync.WaitGroup
	for i := range 4 {
		s := openStore(t, cfg)
		all.Go(func() {
			for j := range 5 {
				st, err := s.Stage()
				if err != nil {
					t.Error(err)
					return
				}
				text := strings.Repeat("x", i+j)
				err = rootfs.NewUnpacker(st.Tree, rootfs.DefaultBounds).Layer(t.Context(), bytes.NewReader(tarOf(t, entry{'f', "x", text, 0})))
				if err == nil {
					_, err = s.Put(t.Context(), st, rootfs.Manifest{Name: "t", Kind: rootfs.KindTree})
				}
				if err = errors.Join(err, st.Close()); err != nil {
					t.Error(err)
				}
				if m, tree, err := s.Use(t.Context(), "t"); err == nil {
					if data, err := os.ReadFile(filepath.Join(tree, "x")); err != nil || cove.Bytes(len(data)) != m.Size {
						t.Errorf("%d bytes of %d: %v", len(data), m.Size, err)
					}
				} else if !errors.Is(err, cove.NotFound) {
					t.Error(err)
				}
				if _, err := s.Remove(t.Context(), "t"); err != nil && !errors.Is(err, cove.NotFound) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
