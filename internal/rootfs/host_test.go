package rootfs_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/rootfs"
)

func TestBuiltin(t *testing.T) {
	const status = "Package: nodejs\nStatus: install ok installed\nArchitecture: amd64\nVersion: %s-1\n\nPackage: other\nVersion: 9\n"
	all := map[string]string{}
	for _, p := range []string{"node", "python3", "gcc", "g++", "make", "git", "vim", "nano", "htop", "jq"} {
		all["usr/bin/"+p] = ""
	}
	with := func(more map[string]string) map[string]string {
		m := map[string]string{}
		for _, from := range []map[string]string{all, more} {
			maps.Copy(m, from)
		}
		return m
	}
	for name, c := range map[string]struct {
		files map[string]string
		ready []string
	}{
		"empty":    {map[string]string{}, []string{"base"}},
		"python":   {map[string]string{"usr/local/bin/python3": ""}, []string{"base", "python"}},
		"data":     {map[string]string{"usr/bin/python3": "", "usr/lib/python3/dist-packages/numpy/__init__.py": "", "usr/lib/python3/dist-packages/pandas/__init__.py": "", "usr/lib64/python3.11/site-packages/matplotlib/__init__.py": ""}, []string{"base", "data", "python"}},
		"no node":  {with(nil), []string{"base", "node", "python"}},
		"old node": {with(map[string]string{"var/lib/dpkg/status": strings.ReplaceAll(status, "%s", "18.9.1")}), []string{"base", "node", "python"}},
		"dpkg":     {with(map[string]string{"var/lib/dpkg/status": strings.ReplaceAll(status, "%s", "1:20.1")}), []string{"base", "node", "python", "sandbox"}},
		"headers":  {with(map[string]string{"usr/include/node/node_version.h": "#define X\n#define NODE_MAJOR_VERSION 22\n"}), []string{"base", "node", "python", "sandbox"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, rootfs.Config{Dir: t.TempDir(), Top: hostTop(t, c.files)})
			list, err := s.List()
			must(t, err)
			var ready []string
			for _, e := range list {
				if e.Ready {
					ready = append(ready, e.Name)
				}
			}
			if diff := cmp.Diff(c.ready, ready); diff != "" {
				t.Error(diff)
			}
		})
	}
	if p := rootfs.Preload("data")["python"]; !slices.Contains(p, "pandas") {
		t.Errorf("data preloads %v", p)
	}
}

func TestFacts(t *testing.T) {
	top := hostTop(t, map[string]string{"usr/bin/x": ""})
	must(t, os.Symlink("python3.11", filepath.Join(top, "usr/bin/python3")))
	if f := rootfs.Facts(top); !strings.HasPrefix(f, "debian 12 ") || !strings.HasSuffix(f, " python3.11") {
		t.Error(f)
	}
	if f := rootfs.Facts(t.TempDir()); !strings.HasPrefix(f, "unknown ") {
		t.Error(f)
	}
}

func TestTidy(t *testing.T) {
	dir := t.TempDir()
	root := openRoot(t, dir)
	must(t, os.MkdirAll(filepath.Join(dir, "etc"), 0o755))
	must(t, os.Symlink("/etc/shadow", filepath.Join(dir, "etc/hosts")))
	must(t, os.Symlink("/outside", filepath.Join(dir, "tmp")))
	must(t, os.Symlink("var/home", filepath.Join(dir, "home")))
	must(t, os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte("root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\nwww-data:x:33:33::/var/www:/bin/sh\nrubbish\n"), 0o644))
	must(t, rootfs.Tidy(root))
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		return string(text)
	}
	want := "root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/workspace:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\nwww-data:x:33:33::/var/www:/bin/sh\n"
	if diff := cmp.Diff(want, read("etc/passwd")); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(read("etc/hosts"), "localhost sandbox") || !strings.HasPrefix(read("etc/group"), "root:x:0:\n") {
		t.Error(read("etc/hosts"), read("etc/group"))
	}
	for name, want := range map[string]bool{"tmp": true, "workspace": true, "proc": true, "var/tmp": true, "home": false} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.IsDir() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestCopy(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(from, "usr/bin"), 0o700))
	must(t, os.WriteFile(filepath.Join(from, "usr/bin/x"), []byte("x"), 0o700))
	must(t, os.Symlink("/etc/shadow", filepath.Join(from, "secret")))
	u := rootfs.NewUnpacker(openRoot(t, to), rootfs.DefaultBounds)
	must(t, u.Copy(t.Context(), from))
	if diff := cmp.Diff([]string{"L secret -> /etc/shadow", "drwxr-xr-x usr", "drwxr-xr-x usr/bin", "-rwxr-xr-x usr/bin/x x"}, shape(t, to)); diff != "" {
		t.Error(diff)
	}
	if err := u.Copy(t.Context(), filepath.Join(from, "nobody")); err == nil {
		t.Error("nothing was copied without a word")
	}
}
