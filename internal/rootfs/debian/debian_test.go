package debian_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
	"github.com/cove-sandbox/cove/internal/rootfs/debian"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pack is a package that a test makes.
type pack struct {
	name, version string
	control       string            // more lines
	files         map[string]string // a name that ends in @ is a link
	postinst      string
}

// makeDeb makes a package and returns its file.
func makeDeb(t *testing.T, dir string, p pack) string {
	t.Helper()
	src := t.TempDir()
	must(t, os.Chmod(src, 0o755))
	must(t, os.MkdirAll(filepath.Join(src, "DEBIAN"), 0o755))
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: for a test\n%s", p.name, p.version, p.control)
	must(t, os.WriteFile(filepath.Join(src, "DEBIAN/control"), []byte(control), 0o644))
	if p.postinst != "" {
		must(t, os.WriteFile(filepath.Join(src, "DEBIAN/postinst"), []byte("#!/bin/sh\nset -e\n"+p.postinst), 0o755))
	}
	for name, text := range p.files {
		path := filepath.Join(src, strings.TrimSuffix(name, "@"))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if strings.HasSuffix(name, "@") {
			must(t, os.Symlink(text, path))
		} else {
			must(t, os.WriteFile(path, []byte(text), 0o755))
		}
	}
	file := filepath.Join(dir, fmt.Sprintf("%s_%s_all.deb", p.name, strings.ReplaceAll(p.version, ":", "%3a")))
	out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--root-owner-group", "--build", src, file).CombinedOutput()
	if err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	return file
}

// archive makes a source of packages on disk that is the only one apt knows, for a
// host on which nothing is installed.
func archive(t *testing.T, packs ...pack) {
	t.Helper()
	for _, name := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("this host has no " + name)
		}
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	var index bytes.Buffer
	for _, p := range packs {
		file := makeDeb(t, dir, p)
		data, err := os.ReadFile(file)
		must(t, err)
		sum := sha256.Sum256(data)
		fmt.Fprintf(&index, "Package: %s\nVersion: %s\nArchitecture: all\nFilename: ./%s\nSize: %d\nSHA256: %s\n%s\n", p.name, p.version, filepath.Base(file), len(data), hex.EncodeToString(sum[:]), p.control)
	}
	must(t, os.WriteFile(filepath.Join(dir, "Packages"), index.Bytes(), 0o644))
	own := t.TempDir()
	for _, name := range []string{"lists/partial", "cache/archives/partial", "etc"} {
		must(t, os.MkdirAll(filepath.Join(own, name), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(own, "status"), nil, 0o644))
	must(t, os.WriteFile(filepath.Join(own, "sources.list"), []byte("deb [trusted=yes] file:"+dir+" ./\n"), 0o644))
	config := fmt.Sprintf(`Dir::Etc::sourcelist "%[1]s/sources.list"; Dir::Etc::sourceparts "-"; Dir::Etc::preferencesparts "-"; Dir::State::status "%[1]s/status";
Dir::State::lists "%[1]s/lists"; Dir::Cache "%[1]s/cache"; APT::Sandbox::User "root"; Acquire::Languages "none";
`, own)
	must(t, os.WriteFile(filepath.Join(own, "apt.conf"), []byte(config), 0o644))
	t.Setenv("APT_CONFIG", filepath.Join(own, "apt.conf"))
	out, err := exec.CommandContext(t.Context(), "apt-get", "update").CombinedOutput()
	if err != nil {
		t.Fatalf("apt-get update: %v: %s", err, out)
	}
}

func stage(t *testing.T) *rootfs.Stage {
	t.Helper()
	s := rootfs.New(rootfs.Config{Dir: t.TempDir()})
	st, err := s.Stage()
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(st.Close(), s.Close())) })
	return st
}

// shape lists the files of a stage's tree.
func shape(t *testing.T, st *rootfs.Stage) (names []string) {
	t.Helper()
	must(t, fs.WalkDir(st.Tree.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			to, _ := st.Tree.Readlink(name)
			name += " -> " + to
		}
		names = append(names, name)
		return nil
	}))
	return names
}

var tool = pack{
	name: "cove-tool", version: "1:2.0-1", control: "Depends: cove-lib (>= 1)\n",
	files: map[string]string{
		"bin/cove-tool": "#!/bin/sh\necho tool\n", "usr/share/doc/cove-tool/copyright": "free", "usr/share/doc/cove-tool/README": "long",
		"usr/share/man/man1/cove-tool.1": "long", "etc/cove-tool.conf": "x=1", "etc/init.d/cove-tool": "no", "var/lib/cove-tool/state": "no",
		"usr/lib/cove/a.basic": "a", "usr/lib/cove/link@": "../../../../../etc/shadow",
	},
	postinst: `update-alternatives --install /usr/bin/cove-a cove-a /usr/lib/cove/a.basic 30 \
  --slave /usr/share/man/man1/cove-a.1 cove-a.1 /usr/share/man/man1/cove-tool.1
update-alternatives --install /usr/bin/cove-b cove-b "$x" 1
`,
}

var lib = pack{
	name: "cove-lib", version: "1.5", files: map[string]string{"usr/lib/cove/lib": "lib", "usr/lib/cove/a.tiny": "t"},
	postinst: "update-alternatives --install /usr/bin/cove-a cove-a /usr/lib/cove/a.tiny 10\nexit 0\n",
}

func TestBuild(t *testing.T) {
	archive(t, tool, lib, pack{name: "cove-other", version: "1", files: map[string]string{"usr/bin/other": ""}})
	st := stage(t)
	var steps []string
	r, err := debian.Build(t.Context(), st, debian.Options{Packages: []rootfs.Wanted{{Name: "cove-tool", Least: 2}}, Tell: func(p debian.Progress) {
		if p.Total != 2 || p.Done > p.Total || p.Bytes > p.Of && p.Step == "fetch" {
			t.Errorf("told %+v", p)
		}
		if !slices.Contains(steps, p.Step) {
			steps = append(steps, p.Step)
		}
	}})
	must(t, err)
	want := debian.Result{
		Packages: []rootfs.Package{{Name: "cove-lib", Version: "1.5"}, {Name: "cove-tool", Version: "1:2.0-1"}},
		Notes:    []string{"scripts of packages were not run: cove-tool", "files outside of /usr and /etc were left out: /var"},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	files := []string{
		"etc/cove-tool.conf", "usr/bin/cove-a -> /usr/lib/cove/a.basic", "usr/bin/cove-tool", "usr/lib/cove/a.basic", "usr/lib/cove/a.tiny", "usr/lib/cove/lib",
		"usr/lib/cove/link -> ../../../../../etc/shadow", "usr/share/doc/cove-tool/copyright",
	}
	if diff := cmp.Diff(files, shape(t, st)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"fetch", "unpack"}, steps); diff != "" {
		t.Error(diff)
	}
	if left, _ := os.ReadDir(st.Dir); len(left) != 1 {
		t.Errorf("the stage has %v", left)
	}
}

func TestBuildFromFile(t *testing.T) {
	archive(t, lib)
	file := makeDeb(t, t.TempDir(), tool)
	st := stage(t)
	r, err := debian.Build(t.Context(), st, debian.Options{Files: []string{file}})
	must(t, err)
	if len(r.Packages) != 2 || !slices.Contains(shape(t, st), "usr/bin/cove-tool") {
		t.Errorf("got %v with %v", r.Packages, shape(t, st))
	}
}

func TestRefused(t *testing.T) {
	archive(t, tool, lib)
	rubbish := filepath.Join(t.TempDir(), "x.deb")
	must(t, os.WriteFile(rubbish, []byte("rubbish"), 0o600))
	for name, c := range map[string]struct {
		o    debian.Options
		code cove.Code
	}{
		"nothing":         {debian.Options{}, cove.Invalid},
		"an option":       {debian.Options{Packages: []rootfs.Wanted{{Name: "-oDebug=1"}}}, cove.Invalid},
		"unknown":         {debian.Options{Packages: []rootfs.Wanted{{Name: "cove-nobody"}}}, cove.Invalid},
		"too old":         {debian.Options{Packages: []rootfs.Wanted{{Name: "cove-tool", Least: 3}}}, cove.Unsupported},
		"no package":      {debian.Options{Files: []string{rubbish}}, cove.Invalid},
		"no file":         {debian.Options{Files: []string{"/nowhere/x.deb"}}, cove.Invalid},
		"too large":       {debian.Options{Packages: []rootfs.Wanted{{Name: "cove-lib"}}, Bounds: rootfs.Bounds{Entries: 100, Size: 2}}, cove.Exhausted},
		"too many":        {debian.Options{Packages: []rootfs.Wanted{{Name: "cove-lib"}}, Bounds: rootfs.Bounds{Entries: 2, Size: 200}}, cove.Exhausted},
		"usr is a link":   {debian.Options{Files: []string{makeDeb(t, t.TempDir(), pack{name: "cove-y", version: "1", files: map[string]string{"usr@": "/root"}})}}, cove.Invalid},
		"etc is a file":   {debian.Options{Files: []string{makeDeb(t, t.TempDir(), pack{name: "cove-z", version: "1", files: map[string]string{"etc": "x"}})}}, cove.Invalid},
		"needs something": {debian.Options{Files: []string{makeDeb(t, t.TempDir(), pack{name: "cove-x", version: "1", control: "Depends: nobody\n"})}}, cove.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := debian.Build(t.Context(), stage(t), c.o); !errors.Is(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
	t.Run("no apt", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := debian.Build(t.Context(), stage(t), debian.Options{Packages: []rootfs.Wanted{{Name: "jq"}}}); !errors.Is(err, cove.Unsupported) {
			t.Error(err)
		}
	})
}

func TestExchanged(t *testing.T) {
	archive(t, lib)
	// What apt fetches is not what its list says.
	sources, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("APT_CONFIG")), "sources.list"))
	must(t, err)
	dir := strings.TrimPrefix(strings.Fields(string(sources))[2], "file:")
	makeDeb(t, dir, pack{name: "cove-lib", version: "1.5", files: map[string]string{"usr/bin/evil": ""}})
	if _, err := debian.Build(t.Context(), stage(t), debian.Options{Packages: []rootfs.Wanted{{Name: "cove-lib"}}}); !errors.Is(err, cove.Unavailable) {
		t.Errorf("got %v", err)
	}
}

// TestArchive builds a layer of the host's own archive of packages, if that can be
// reached.
func TestArchive(t *testing.T) {
	st := stage(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := debian.Build(ctx, st, debian.Options{Packages: []rootfs.Wanted{{Name: "hello"}}})
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), "archive") {
			t.Fatalf("COVE_REQUIRE names archive, and: %v", err)
		}
		t.Skipf("the archive of packages cannot be used: %v", err)
	}
	if len(r.Packages) == 0 {
		t.Skip("the host has all of it")
	}
	if found := shape(t, st); !slices.Contains(found, "usr/bin/hello") {
		t.Errorf("it has %v", found)
	}
}
