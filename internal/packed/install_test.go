//go:build linux

package packed_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/packed"
)

// image is a program that says something.
func image(t *testing.T, words string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte("#!/bin/sh\necho " + words + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func program(image []byte, id string) packed.Program {
	return packed.Program{Name: "cove-x", Title: "X", Image: image, ID: id}
}

func says(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestEmbedded(t *testing.T) {
	for _, c := range []struct {
		p    packed.Program
		want bool
	}{{program(nil, ""), false}, {program([]byte("x"), ""), false}, {program(nil, "aa"), false}, {program([]byte("x"), "aa"), true}} {
		if got := c.p.Embedded(); got != c.want {
			t.Errorf("%+v: %v", c.p, got)
		}
	}
}

func TestInstalledOnce(t *testing.T) {
	dir := t.TempDir()
	one := program(image(t, "one"), "00000000000000aa")
	first, err := one.Installed(dir)
	if err != nil || says(t, first) != "one" {
		t.Fatal(first, err)
	}
	made, err := os.Stat(first)
	if err != nil || made.Mode() != 0o555 {
		t.Fatal(made.Mode(), err)
	}
	second, err := one.Installed(dir)
	if err != nil || second != first {
		t.Fatal(second, err)
	}
	if again, err := os.Stat(second); err != nil || !os.SameFile(made, again) {
		t.Errorf("it was written anew: %v", err)
	}

	third, err := program(image(t, "two"), "00000000000000bb").Installed(dir)
	if err != nil || says(t, third) != "two" {
		t.Fatal(third, err)
	}
	if diff := cmp.Diff([]string{"cove-x-00000000000000bb"}, files(t, dir)); diff != "" {
		t.Errorf("the one of another build stays: %s", diff)
	}
}

func TestInstalledByMany(t *testing.T) {
	dir := t.TempDir()
	one := program(image(t, "one"), "00000000000000aa")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if path, err := one.Installed(dir); err != nil || path != filepath.Join(dir, "cove-x-00000000000000aa") {
				t.Error(path, err)
			}
		})
	}
	wg.Wait()
}

func TestWhatIsNotOursIsReplaced(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"cut short": func(path string) error { return os.WriteFile(path, []byte("#!"), 0o555) },
		"writable":  func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh\necho bad\n"), 0o755) },
		"a link":    func(path string) error { return os.Symlink("/bin/true", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := put(filepath.Join(dir, "cove-x-00000000000000aa")); err != nil {
				t.Fatal(err)
			}
			path, err := program(image(t, "one"), "00000000000000aa").Installed(dir)
			if err != nil || says(t, path) != "one" {
				t.Fatal(path, err)
			}
		})
	}
}

func TestInstallFails(t *testing.T) {
	whole := image(t, "one")
	bad := bytes.Clone(whole)
	bad[len(bad)-6] ^= 1 // its checksum
	for name, c := range map[string]struct {
		image []byte
		dir   string
	}{
		"no directory":   {whole, "none"},
		"not compressed": {[]byte("plain text"), ""},
		"damaged":        {bad, ""},
		"cut short":      {whole[:3], ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, err := program(c.image, "00000000000000aa").Installed(filepath.Join(dir, c.dir))
			if path != "" || cove.CodeOf(err) != cove.Unavailable {
				t.Errorf("%q, %v", path, err)
			}
			if left := files(t, dir); len(left) > 0 {
				t.Errorf("it leaves %q", left)
			}
		})
	}
}

// A directory of its own holds the file under its name and nothing else, whatever was
// there before.
func TestAlone(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "cove-x-00000000000000aa")
	for _, old := range []string{own, filepath.Join(dir, "cove-x-00000000000000cc")} {
		if err := os.Mkdir(old, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(old, "else"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one := program(image(t, "one"), "00000000000000aa")
	one.Alone = true
	for range 2 {
		path, err := one.Installed(dir)
		if err != nil || path != filepath.Join(own, "cove-x") || says(t, path) != "one" {
			t.Fatal(path, err)
		}
		if diff := cmp.Diff([]string{"cove-x"}, files(t, own)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"cove-x-00000000000000aa"}, files(t, dir)); diff != "" {
			t.Error(diff)
		}
		if info, err := os.Stat(own); err != nil || info.Mode().Perm() != 0o755 {
			t.Error(info.Mode(), err)
		}
	}
}
